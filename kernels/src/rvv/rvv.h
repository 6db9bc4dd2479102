// The one place that knows how intrinsics are spelled. Compilers since mid-2023 prefix them with
// __riscv_; older ones (gcc 12.0.1 of the board's SDK, clang 14 and 15) do not, and order the
// operands of a few differently.
#pragma once

#include <riscv_vector.h>

#include <cstddef>

#if defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 11000
#define K230_RVV(name) __riscv_##name
#define K230_RVV_MERGE(suffix, off, on, mask, vl) __riscv_vmerge_vvm_##suffix(off, on, mask, vl)
#define K230_RVV_REDUSUM(suffix, v, init, vl) __riscv_vfredusum_vs_##suffix(v, init, vl)
#else
#define K230_RVV(name) name
#define K230_RVV_MERGE(suffix, off, on, mask, vl) vmerge_vvm_##suffix(mask, off, on, vl)
#define K230_RVV_REDUSUM(suffix, v, init, vl) vfredusum_vs_##suffix(init, v, init, vl)
#endif

#define K230_INLINE inline __attribute__((always_inline))

namespace k230::rvv {

// Register groups of one LMUL: float32 operations under the names the kernels use.
#define K230_DEFINE_GROUP(Name, lm, bits)                                                         \
  struct Name {                                                                                   \
    using F32 = vfloat32##lm##_t;                                                                 \
    using Mask = vbool##bits##_t;                                                                 \
    static K230_INLINE size_t set(size_t n) { return K230_RVV(vsetvl_e32##lm)(n); }               \
    static K230_INLINE F32 load(const float* p, size_t vl) {                                      \
      return K230_RVV(vle32_v_f32##lm)(p, vl);                                                    \
    }                                                                                             \
    static K230_INLINE F32 load2(const float* p, size_t vl) { /* every second float */            \
      return K230_RVV(vlse32_v_f32##lm)(p, 2 * sizeof(float), vl);                                \
    }                                                                                             \
    static K230_INLINE void store(float* p, F32 v, size_t vl) {                                   \
      K230_RVV(vse32_v_f32##lm)(p, v, vl);                                                        \
    }                                                                                             \
    static K230_INLINE F32 fill(float s, size_t vl) { return K230_RVV(vfmv_v_f_f32##lm)(s, vl); } \
    static K230_INLINE F32 mul(F32 v, float s, size_t vl) {                                       \
      return K230_RVV(vfmul_vf_f32##lm)(v, s, vl);                                                \
    }                                                                                             \
    static K230_INLINE F32 fma(F32 acc, float s, F32 v, size_t vl) {                              \
      return K230_RVV(vfmacc_vf_f32##lm)(acc, s, v, vl);                                          \
    }                                                                                             \
    static K230_INLINE F32 fma(F32 acc, F32 a, F32 b, size_t vl) {                                \
      return K230_RVV(vfmacc_vv_f32##lm)(acc, a, b, vl);                                          \
    }                                                                                             \
    static K230_INLINE F32 add(F32 v, float s, size_t vl) {                                       \
      return K230_RVV(vfadd_vf_f32##lm)(v, s, vl);                                                \
    }                                                                                             \
    static K230_INLINE F32 add(F32 a, F32 b, size_t vl) {                                         \
      return K230_RVV(vfadd_vv_f32##lm)(a, b, vl);                                                \
    }                                                                                             \
    static K230_INLINE F32 max(F32 v, float s, size_t vl) {                                       \
      return K230_RVV(vfmax_vf_f32##lm)(v, s, vl);                                                \
    }                                                                                             \
    static K230_INLINE F32 min(F32 v, float s, size_t vl) {                                       \
      return K230_RVV(vfmin_vf_f32##lm)(v, s, vl);                                                \
    }                                                                                             \
    static K230_INLINE Mask is_nan(F32 v, size_t vl) {                                            \
      return K230_RVV(vmfne_vv_f32##lm##_b##bits)(v, v, vl);                                      \
    }                                                                                             \
    static K230_INLINE long first(Mask m, size_t vl) { /* -1 when no lane is set */                \
      return K230_RVV(vfirst_m_b##bits)(m, vl);                                                   \
    }                                                                                             \
    static K230_INLINE bool any_nan(F32 v, size_t vl) { return first(is_nan(v, vl), vl) >= 0; }   \
    static K230_INLINE F32 select(Mask mask, F32 on, F32 off, size_t vl) {                        \
      return K230_RVV_MERGE(f32##lm, off, on, mask, vl);                                          \
    }                                                                                             \
    static K230_INLINE F32 slide_up(F32 v, float first, size_t vl) {                              \
      return K230_RVV(vfslide1up_vf_f32##lm)(v, first, vl);                                       \
    }                                                                                             \
    static K230_INLINE F32 slide_down(F32 v, float last, size_t vl) {                             \
      return K230_RVV(vfslide1down_vf_f32##lm)(v, last, vl);                                      \
    }                                                                                             \
    static K230_INLINE float sum(F32 v, size_t vl) {                                              \
      const vfloat32m1_t zero = K230_RVV(vfmv_v_f_f32m1)(0.0f, 1);                                \
      return K230_RVV(vfmv_f_s_f32m1_f32)(K230_RVV_REDUSUM(f32##lm##_f32m1, v, zero, vl));        \
    }                                                                                             \
  };

K230_DEFINE_GROUP(M1, m1, 32)
K230_DEFINE_GROUP(M2, m2, 16)
K230_DEFINE_GROUP(M4, m4, 8)
K230_DEFINE_GROUP(M8, m8, 4)
#undef K230_DEFINE_GROUP

// Floats in one vector register of this core.
K230_INLINE size_t lanes_m1() { return K230_RVV(vsetvlmax_e32m1)(); }

}  // namespace k230::rvv
