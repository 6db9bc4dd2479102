// One channel of a depthwise 3x3 convolution, padding 1: output columns in lanes. Each input row
// is read once per column tile and feeds the up to three output rows it belongs to, which roll
// through registers. Rows outside the image are skipped, columns outside come from slides.
#include "../isa_table.h"
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

using detail::Depthwise3x3;

struct Weights {
  float w0, w1, w2, w3, w4, w5, w6, w7, w8;
};

K230_INLINE Weights weights_of(const Depthwise3x3& p) {
  const float* w = p.w;
  return {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]};
}

// Bias, clamp and store of one output row. seen gathers what a NaN in a watched row makes NaN.
template <class V, bool Watch>
K230_INLINE void finish(const Depthwise3x3& p, typename V::F32 acc, typename V::F32& seen,
                        float* y, size_t vl) {
  acc = V::add(acc, p.bias, vl);
  if (p.clamp) {
    if constexpr (Watch) seen = V::add(seen, acc, vl);
    acc = V::min(V::max(acc, p.low, vl), p.high, vl);
  }
  V::store(y, acc, vl);
}

// Stride 1. What one input row does: it is the last of output row prev, the middle of cur and the
// first of next. Top: it is row 0, so there is no prev and cur begins here. Bottom: no next, and
// cur ends here. Left and Right: the tile touches that side of the image. The columns of the
// following row are loaded into mid, left and right as soon as those are used up.
template <class V, bool Left, bool Right, bool Top, bool Bottom, bool Watch>
K230_INLINE void row(const Depthwise3x3& p, const Weights& w, typename V::F32& prev,
                     typename V::F32& cur, typename V::F32& next, typename V::F32& left,
                     typename V::F32& mid, typename V::F32& right, typename V::F32& seen,
                     const float* following, float* y, size_t vl) {
  if constexpr (Left) left = V::slide_up(mid, 0.0f, vl);
  if constexpr (Right) right = V::slide_down(mid, 0.0f, vl);
  if constexpr (!Top) prev = V::fma(prev, w.w7, mid, vl);
  cur = Top ? V::mul(mid, w.w4, vl) : V::fma(cur, w.w4, mid, vl);
  if constexpr (!Bottom) {
    next = V::mul(mid, w.w1, vl);
    mid = V::load(following, vl);
  }
  if constexpr (!Top) prev = V::fma(prev, w.w6, left, vl);
  cur = V::fma(cur, w.w3, left, vl);
  if constexpr (!Bottom) {
    next = V::fma(next, w.w0, left, vl);
    if constexpr (!Left) left = V::load(following - 1, vl);
  }
  if constexpr (!Top) prev = V::fma(prev, w.w8, right, vl);
  cur = V::fma(cur, w.w5, right, vl);
  if constexpr (!Bottom) {
    next = V::fma(next, w.w2, right, vl);
    if constexpr (!Right) right = V::load(following + 1, vl);
  }
  if constexpr (!Top) finish<V, Watch>(p, prev, seen, y, vl);
  if constexpr (Bottom) finish<V, true>(p, cur, seen, Top ? y : y + p.out_w, vl);
}

template <class V, bool Left, bool Right>
K230_INLINE bool tile_stride1(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const float* x = p.x + col;
  float* y = p.y + col;
  const int64_t ldx = p.in_w;
  const int64_t ldy = p.out_w;
  typename V::F32 a, b, c, left, right;
  typename V::F32 mid = V::load(x, vl);
  if constexpr (!Left) left = V::load(x - 1, vl);
  if constexpr (!Right) right = V::load(x + 1, vl);
  typename V::F32 seen = V::fill(0.0f, vl);
#define K230_ROW(top, bottom, watch, prev, cur, next) \
  row<V, Left, Right, top, bottom, watch>(p, w, prev, cur, next, left, mid, right, seen, x, y, vl)
  int64_t rest = p.in_h - 1;  // input rows after this one
  x += ldx;
  if (rest == 0) {
    K230_ROW(true, true, true, a, b, c);
    return p.clamp && V::any_nan(seen, vl);
  }
  K230_ROW(true, false, false, c, a, b);
  x += ldx;
  // A NaN at input row r reaches output rows r - 1 .. r + 1: watching every third is enough.
  for (; rest > 3; rest -= 3) {
    K230_ROW(false, false, false, a, b, c);
    x += ldx; y += ldy;
    K230_ROW(false, false, true, b, c, a);
    x += ldx; y += ldy;
    K230_ROW(false, false, false, c, a, b);
    x += ldx; y += ldy;
  }
  if (rest == 1) {
    K230_ROW(false, true, true, a, b, c);
  } else {
    K230_ROW(false, false, true, a, b, c);
    x += ldx; y += ldy;
    if (rest == 2) {
      K230_ROW(false, true, true, b, c, a);
    } else {
      K230_ROW(false, false, true, b, c, a);
      y += ldy;
      K230_ROW(false, true, true, c, a, b);
    }
  }
#undef K230_ROW
  return p.clamp && V::any_nan(seen, vl);
}

// Stride 2: loads the even and odd columns of one input row for output columns [0, vl). With Odd
// the last output column has no odd column in the image.
template <class V, bool Left, bool Odd>
K230_INLINE void columns2(const float* x, typename V::F32& left, typename V::F32& mid,
                          typename V::F32& right, size_t vl) {
  mid = V::load2(x, vl);
  right = V::load2(x + 1, Odd ? vl - 1 : vl);
  left = V::slide_up(right, Left ? 0.0f : x[-1], vl);
  if constexpr (Odd) right = V::slide_down(left, 0.0f, vl);
}

template <class V, bool Left, bool Odd>
K230_INLINE bool tile_stride2(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const float* x = p.x + 2 * col;
  float* y = p.y + col;
  typename V::F32 left, mid, right, cur, next;
  typename V::F32 seen = V::fill(0.0f, vl);
  columns2<V, Left, Odd>(x, left, mid, right, vl);
  cur = V::mul(mid, w.w4, vl);
  cur = V::fma(cur, w.w3, left, vl);
  cur = V::fma(cur, w.w5, right, vl);
  for (int64_t rest = p.in_h - 1; rest > 0; rest -= 2) {
    x += p.in_w;
    columns2<V, Left, Odd>(x, left, mid, right, vl);
    cur = V::fma(cur, w.w7, mid, vl);
    next = V::mul(mid, w.w1, vl);
    cur = V::fma(cur, w.w8, right, vl);
    next = V::fma(next, w.w2, right, vl);
    cur = V::fma(cur, w.w6, left, vl);
    next = V::fma(next, w.w0, left, vl);
    finish<V, true>(p, cur, seen, y, vl);
    y += p.out_w;
    if (rest == 1) return p.clamp && V::any_nan(seen, vl);
    x += p.in_w;
    columns2<V, Left, Odd>(x, left, mid, right, vl);
    cur = V::fma(next, w.w4, mid, vl);
    cur = V::fma(cur, w.w5, right, vl);
    cur = V::fma(cur, w.w3, left, vl);
  }
  finish<V, true>(p, cur, seen, y, vl);
  return p.clamp && V::any_nan(seen, vl);
}

template <class V>
K230_INLINE bool tile(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const bool left = col == 0;
  const bool right = col + static_cast<int64_t>(vl) == p.out_w;
  if (p.stride == 2) {
    const bool odd = right && p.in_w % 2 == 1;
    if (left) {
      return odd ? tile_stride2<V, true, true>(p, w, col, vl)
                 : tile_stride2<V, true, false>(p, w, col, vl);
    }
    return odd ? tile_stride2<V, false, true>(p, w, col, vl)
               : tile_stride2<V, false, false>(p, w, col, vl);
  }
  if (left) {
    return right ? tile_stride1<V, true, true>(p, w, col, vl)
                 : tile_stride1<V, true, false>(p, w, col, vl);
  }
  return right ? tile_stride1<V, false, true>(p, w, col, vl)
               : tile_stride1<V, false, false>(p, w, col, vl);
}

}  // namespace

bool depthwise3x3(const Depthwise3x3& p) {
  const size_t m1 = lanes_m1();
  const Weights w = weights_of(p);
  const size_t n = static_cast<size_t>(p.out_w);
  bool nan = false;
  size_t col = 0;
  while (n - col > 2 * m1) {
    const size_t vl = M4::set(n - col < 4 * m1 ? n - col : 4 * m1);
    nan |= tile<M4>(p, w, static_cast<int64_t>(col), vl);
    col += vl;
  }
  if (n - col > m1) {
    nan |= tile<M2>(p, w, static_cast<int64_t>(col), M2::set(n - col));
  } else if (n > col) {
    nan |= tile<M1>(p, w, static_cast<int64_t>(col), M1::set(n - col));
  }
  return nan;
}

}  // namespace k230::rvv
