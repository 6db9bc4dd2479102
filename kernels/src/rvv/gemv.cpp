// Matrix times vector, bound by the memory the matrix comes from.
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

// Four dot products at a time share the loads of x. Lanes beyond the last full group go into a
// product of their own, so that no accumulator mixes vector lengths.
template <int R>
K230_INLINE void dots(const float* x, const float* w, int64_t ldw, size_t k, float* y) {
  const float* w1 = w + (R > 1 ? ldw : 0);
  const float* w2 = w + (R > 2 ? 2 * ldw : 0);
  const float* w3 = w + (R > 3 ? 3 * ldw : 0);
  const size_t full = M4::set(k);
  vfloat32m4_t a = M4::fill(0.0f, full);
  vfloat32m4_t b = a;
  vfloat32m4_t c = a;
  vfloat32m4_t d = a;
  size_t i = 0;
  for (; i + full <= k; i += full) {
    const vfloat32m4_t v = M4::load(x + i, full);
    a = M4::fma(a, v, M4::load(w + i, full), full);
    if constexpr (R > 1) b = M4::fma(b, v, M4::load(w1 + i, full), full);
    if constexpr (R > 2) c = M4::fma(c, v, M4::load(w2 + i, full), full);
    if constexpr (R > 3) d = M4::fma(d, v, M4::load(w3 + i, full), full);
  }
  float s0 = M4::sum(a, full);
  float s1 = R > 1 ? M4::sum(b, full) : 0.0f;
  float s2 = R > 2 ? M4::sum(c, full) : 0.0f;
  float s3 = R > 3 ? M4::sum(d, full) : 0.0f;
  while (i < k) {
    const size_t vl = M4::set(k - i);
    const vfloat32m4_t v = M4::load(x + i, vl);
    s0 += M4::sum(M4::fma(M4::fill(0.0f, vl), v, M4::load(w + i, vl), vl), vl);
    if constexpr (R > 1) s1 += M4::sum(M4::fma(M4::fill(0.0f, vl), v, M4::load(w1 + i, vl), vl), vl);
    if constexpr (R > 2) s2 += M4::sum(M4::fma(M4::fill(0.0f, vl), v, M4::load(w2 + i, vl), vl), vl);
    if constexpr (R > 3) s3 += M4::sum(M4::fma(M4::fill(0.0f, vl), v, M4::load(w3 + i, vl), vl), vl);
    i += vl;
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
