// Matrix times vector, bound by the memory the matrix comes from.
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

// Four dot products at a time share the loads of x. What does not fill a group is done one by
// one, so that no accumulator mixes vector lengths.
template <int R>
K230_INLINE void dots(const float* x, const float* w, int64_t ldw, size_t k, float* y) {
  const float* w1 = w + (R > 1 ? ldw : 0);
  const float* w2 = w + (R > 2 ? 2 * ldw : 0);
  const float* w3 = w + (R > 3 ? 3 * ldw : 0);
  const size_t full = M2::set(k);
  vfloat32m2_t a = M2::fill(0.0f, full);
  vfloat32m2_t b = a;
  vfloat32m2_t c = a;
  vfloat32m2_t d = a;
  size_t i = 0;
  for (; i + full <= k; i += full) {
    const vfloat32m2_t v = M2::load(x + i, full);
    a = M2::fma(a, v, M2::load(w + i, full), full);
    if constexpr (R > 1) b = M2::fma(b, v, M2::load(w1 + i, full), full);
    if constexpr (R > 2) c = M2::fma(c, v, M2::load(w2 + i, full), full);
    if constexpr (R > 3) d = M2::fma(d, v, M2::load(w3 + i, full), full);
  }
  float s0 = M2::sum(a, full);
  float s1 = R > 1 ? M2::sum(b, full) : 0.0f;
  float s2 = R > 2 ? M2::sum(c, full) : 0.0f;
  float s3 = R > 3 ? M2::sum(d, full) : 0.0f;
  for (; i < k; ++i) {
    s0 += x[i] * w[i];
    if constexpr (R > 1) s1 += x[i] * w1[i];
    if constexpr (R > 2) s2 += x[i] * w2[i];
    if constexpr (R > 3) s3 += x[i] * w3[i];
  }
  y[0] = s0;
  if constexpr (R > 1) y[1] = s1;
  if constexpr (R > 2) y[2] = s2;
  if constexpr (R > 3) y[3] = s3;
}

}  // namespace

void dot_rows(const float* x, const float* w, int64_t ldw, int64_t rows, int64_t k, float* y) {
  int64_t r = 0;
  const size_t kk = static_cast<size_t>(k);
  for (; r + 4 <= rows; r += 4) dots<4>(x, w + r * ldw, ldw, kk, y + r);
  for (; r < rows; ++r) dots<1>(x, w + r * ldw, ldw, kk, y + r);
}

// Eight rows of b at a time, each read from end to end: eight streams that a prefetcher can
// follow, and y stays in the first-level cache between the passes.
void gemv_columns(const float* a, const float* b, int64_t ldb, int64_t k, int64_t n, float* y) {
  const size_t nn = static_cast<size_t>(n);
  for (int64_t i = 0; i < k;) {
    const bool eight = k - i >= 8;
    for (size_t col = 0; col < nn;) {
      const size_t vl = M4::set(nn - col);
      const float* p = b + i * ldb + static_cast<int64_t>(col);
      vfloat32m4_t acc = i == 0 ? M4::mul(M4::load(p, vl), a[0], vl)
                                : M4::fma(M4::load(y + col, vl), a[i], M4::load(p, vl), vl);
      if (eight) {
        acc = M4::fma(acc, a[i + 1], M4::load(p + ldb, vl), vl);
        acc = M4::fma(acc, a[i + 2], M4::load(p + 2 * ldb, vl), vl);
        acc = M4::fma(acc, a[i + 3], M4::load(p + 3 * ldb, vl), vl);
        acc = M4::fma(acc, a[i + 4], M4::load(p + 4 * ldb, vl), vl);
        acc = M4::fma(acc, a[i + 5], M4::load(p + 5 * ldb, vl), vl);
        acc = M4::fma(acc, a[i + 6], M4::load(p + 6 * ldb, vl), vl);
        acc = M4::fma(acc, a[i + 7], M4::load(p + 7 * ldb, vl), vl);
      }
      M4::store(y + col, acc, vl);
      col += vl;
    }
    i += eight ? 8 : 1;
  }
}

}  // namespace k230::rvv
