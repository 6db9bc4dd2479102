// Element-wise operations and reductions over contiguous memory.
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

// vfmax and vfmin drop NaN: put those lanes back.
K230_INLINE vfloat32m4_t clamp_keeping_nan(vfloat32m4_t v, float low, float high, size_t vl) {
  const vfloat32m4_t bounded = M4::min(M4::max(v, low, vl), high, vl);
  return M4::select(M4::is_nan(v, vl), v, bounded, vl);
}

}  // namespace

void clamp(const float* x, int64_t count, float low, float high, float* y) {
  size_t n = static_cast<size_t>(count);
  const size_t full = M4::set(n);
  for (; n >= 2 * full && n > 0; n -= 2 * full) {
    const vfloat32m4_t a = M4::load(x, full);
    const vfloat32m4_t b = M4::load(x + full, full);
    M4::store(y, clamp_keeping_nan(a, low, high, full), full);
    M4::store(y + full, clamp_keeping_nan(b, low, high, full), full);
    x += 2 * full;
    y += 2 * full;
  }
  while (n > 0) {
    const size_t vl = M4::set(n);
    M4::store(y, clamp_keeping_nan(M4::load(x, vl), low, high, vl), vl);
    x += vl;
    y += vl;
    n -= vl;
  }
}

void add(const float* a, const float* b, float alpha, int64_t count, float* y) {
  for (size_t n = static_cast<size_t>(count); n > 0;) {
    const size_t vl = M8::set(n);
    const vfloat32m8_t p = M8::load(a, vl);
    const vfloat32m8_t q = M8::load(b, vl);
    M8::store(y, alpha == 1.0f ? M8::add(p, q, vl) : M8::fma(p, alpha, q, vl), vl);
    a += vl;
    b += vl;
    y += vl;
    n -= vl;
  }
}

void scale_shift(const float* x, int64_t count, float scale, float shift, float* y) {
  for (size_t n = static_cast<size_t>(count); n > 0;) {
    const size_t vl = M8::set(n);
    M8::store(y, M8::add(M8::mul(M8::load(x, vl), scale, vl), shift, vl), vl);
    x += vl;
    y += vl;
    n -= vl;
  }
}

float sum(const float* x, int64_t count) {
  size_t n = static_cast<size_t>(count);
  if (n == 0) return 0.0f;
  // The accumulator stays full-width: only the last, short group must not touch lanes beyond it,
  // so it is reduced by itself.
  float total = 0.0f;
  const size_t full = M4::set(n);
  if (n >= 2 * full) {
    vfloat32m4_t acc = M4::load(x, full);
    x += full;
    for (n -= full; n >= full; n -= full) {
      acc = M4::add(acc, M4::load(x, full), full);
      x += full;
    }
    total = M4::sum(acc, full);
  }
  while (n > 0) {
    const size_t vl = M4::set(n);
    total += M4::sum(M4::load(x, vl), vl);
    x += vl;
    n -= vl;
  }
  return total;
}

void copy_strided(const float* x, int64_t stride, int64_t count, float* y) {
  if (stride > 2) {  // longer strides load one element a cycle at best, and scatter over pages
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
    return;
  }
  for (size_t n = static_cast<size_t>(count); n > 0;) {
    const size_t vl = M4::set(n);
    M4::store(y, stride == 1 ? M4::load(x, vl) : M4::load2(x, vl), vl);
    x += static_cast<int64_t>(vl) * stride;
    y += vl;
    n -= vl;
  }
}

}  // namespace k230::rvv
