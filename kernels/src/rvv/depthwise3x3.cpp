// One channel of a depthwise 3x3 convolution, padding 1: output columns in lanes. Each input row
// is read once per column tile and feeds the up to three output rows it belongs to, which roll
// through registers. Rows outside the image are skipped, columns outside come from slides.
#include <cstdint>
#include <cstring>

#include "../isa_table.h"
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

using detail::Depthwise3x3;

// All scalars of a channel, by value: p itself might change with any store, as far as a compiler
// knows, and reading it again would wait behind the vector loads.
struct Weights {
  float w0, w1, w2, w3, w4, w5, w6, w7, w8;
  float bias, low, high;
};

K230_INLINE Weights weights_of(const Depthwise3x3& p) {
  const float* w = p.w;
  return {w[0], w[1], w[2], w[3], w[4], w[5], w[6],
          w[7], w[8], p.bias, p.low, p.high};
}

// Bias, clamp and store of one output row. clean stays -1 until a watched row holds a NaN.
template <class V, bool Clamp, bool Watch>
K230_INLINE void finish(const Weights& w, typename V::F32 acc, long& clean, float* y, size_t vl) {
  acc = V::add(acc, w.bias, vl);
  if constexpr (Clamp) {
    if constexpr (Watch) clean &= V::first(V::is_nan(acc, vl), vl);
    acc = V::min(V::max(acc, w.low, vl), w.high, vl);
  }
  V::store(y, acc, vl);
}

// Stride 1. What one input row does: it is the last of output row prev, the middle of cur and the
// first of next. Top: it is row 0, so there is no prev and cur begins here. Bottom: no next, and
// cur ends here. Pending: next still holds the output row before prev, which is stored here, at a
// moment when the load unit is idle. Left and Right: the tile touches that side of the image.
//
// The columns of the following row are loaded into mid, left and right as soon as those are used
// up. Operations take turns between the output rows, so that none needs the one before it.
template <class V, bool Clamp, bool Left, bool Right, bool Top, bool Bottom, bool Pending,
          bool Watch>
K230_INLINE void row(const Depthwise3x3& p, const Weights& w, typename V::F32& prev,
                     typename V::F32& cur, typename V::F32& next, typename V::F32& left,
                     typename V::F32& mid, typename V::F32& right, long& clean,
                     const float* following, float* y, size_t vl) {
  if constexpr (Left) left = V::slide_up(mid, 0.0f, vl);
  if constexpr (!Top) prev = V::fma(prev, w.w7, mid, vl);
  if constexpr (Right) right = V::slide_down(mid, 0.0f, vl);
  cur = Top ? V::mul(mid, w.w4, vl) : V::fma(cur, w.w4, mid, vl);
  if constexpr (Pending) V::store(y - p.out_w, next, vl);
  if constexpr (!Bottom) {
    next = V::mul(mid, w.w1, vl);
    mid = V::load(following, vl);
  }
  if constexpr (!Top) prev = V::fma(prev, w.w6, left, vl);
  cur = V::fma(cur, w.w3, left, vl);
  if constexpr (!Top) prev = V::fma(prev, w.w8, right, vl);
  if constexpr (!Bottom) {
    next = V::fma(next, w.w0, left, vl);
    if constexpr (!Left) left = V::load(following - 1, vl);
  }
  if constexpr (!Top) prev = V::add(prev, w.bias, vl);
  cur = V::fma(cur, w.w5, right, vl);
  if constexpr (!Top && Clamp && Watch) clean &= V::first(V::is_nan(prev, vl), vl);
  if constexpr (!Top && Clamp) prev = V::max(prev, w.low, vl);
  if constexpr (!Bottom) {
    next = V::fma(next, w.w2, right, vl);
    if constexpr (!Right) right = V::load(following + 1, vl);
  }
  if constexpr (!Top && Clamp) prev = V::min(prev, w.high, vl);
  if constexpr (Bottom) {
    if constexpr (!Top) V::store(y, prev, vl);
    finish<V, Clamp, true>(w, cur, clean, Top ? y : y + p.out_w, vl);
  }
}

template <class V, bool Clamp, bool Left, bool Right>
K230_INLINE bool tile_stride1(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const float* x = p.x + col;
  float* y = p.y + col;
  const int64_t ldx = p.in_w;
  const int64_t ldy = p.out_w;
  typename V::F32 a, b, c, left, right;
  typename V::F32 mid = V::load(x, vl);
  if constexpr (!Left) left = V::load(x - 1, vl);
  if constexpr (!Right) right = V::load(x + 1, vl);
  long clean = -1;
#define K230_ROW(top, bottom, pending, watch, prev, cur, next)                                    \
  do {                                                                                            \
    x += ldx;                                                                                     \
    row<V, Clamp, Left, Right, top, bottom, pending, watch>(p, w, prev, cur, next, left, mid,     \
                                                            right, clean, x, y, vl);              \
    if (!(top)) y += ldy;                                                                         \
  } while (false)
  // A NaN at input row r reaches output rows r - 1 .. r + 1: watching every third, beginning with
  // the second, and the last ones is enough.
  int64_t rest = p.in_h - 1;  // input rows after the first
  if (rest == 0) {
    K230_ROW(true, true, false, true, a, b, c);
  } else if (rest == 1) {
    K230_ROW(true, false, false, false, c, a, b);
    K230_ROW(false, true, false, true, a, b, c);
  } else {
    K230_ROW(true, false, false, false, c, a, b);
    K230_ROW(false, false, false, false, a, b, c);
    for (--rest; rest > 3; rest -= 3) {
      K230_ROW(false, false, true, true, b, c, a);
      K230_ROW(false, false, true, false, c, a, b);
      K230_ROW(false, false, true, false, a, b, c);
    }
    if (rest == 1) {
      K230_ROW(false, true, true, true, b, c, a);
    } else {
      K230_ROW(false, false, true, true, b, c, a);
      if (rest == 2) {
        K230_ROW(false, true, true, true, c, a, b);
      } else {
        K230_ROW(false, false, true, true, c, a, b);
        K230_ROW(false, true, true, true, a, b, c);
      }
    }
  }
#undef K230_ROW
  return clean != -1;
}

// Stride 2: the even columns of an input row are the middle ones, the odd columns the right ones
// and, moved up by one, the left ones. With Odd the last output column has no odd column in the
// image.
template <class V, bool Odd>
K230_INLINE typename V::F32 load_odd(const float* x, size_t vl) {
  return V::load2(x + 1, Odd ? vl - 1 : vl);
}

// first: the column left of the tile. Its scalar load would wait behind the vector loads, so it is
// done before them.
template <class V, bool Odd>
K230_INLINE typename V::F32 left_of(float first, typename V::F32& right, size_t vl) {
  const typename V::F32 left = V::slide_up(right, first, vl);
  if constexpr (Odd) right = V::slide_down(left, 0.0f, vl);
  return left;
}

// Loading takes as long as computing, so the columns of the following row are loaded into mid and
// right as soon as those are used up: right first, because the next row begins with it.
template <class V, bool Clamp, bool Left, bool Odd>
K230_INLINE bool tile_stride2(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const float* x = p.x + 2 * col;
  float* y = p.y + col;
  const int64_t ldx = p.in_w;
  typename V::F32 mid, right, left, cur, next;
  long clean = -1;
  float first = Left ? 0.0f : x[-1];
  right = load_odd<V, Odd>(x, vl);
  mid = V::load2(x, vl);
  left = left_of<V, Odd>(first, right, vl);
  cur = V::mul(right, w.w5, vl);
  cur = V::fma(cur, w.w3, left, vl);
  cur = V::fma(cur, w.w4, mid, vl);
  int64_t rest = p.in_h - 1;
  if (rest > 0) {
    x += ldx;
    if constexpr (!Left) first = x[-1];
    right = load_odd<V, Odd>(x, vl);
    mid = V::load2(x, vl);
  }
  for (; rest > 2; rest -= 2) {  // an odd row, the even one behind it; one more follows
    left = left_of<V, Odd>(first, right, vl);
    x += ldx;
    if constexpr (!Left) first = x[-1];
    cur = V::fma(cur, w.w8, right, vl);
    next = V::mul(right, w.w2, vl);
    right = load_odd<V, Odd>(x, vl);
    cur = V::fma(cur, w.w6, left, vl);
    next = V::fma(next, w.w0, left, vl);
    cur = V::fma(cur, w.w7, mid, vl);
    next = V::fma(next, w.w1, mid, vl);
    mid = V::load2(x, vl);
    finish<V, Clamp, true>(w, cur, clean, y, vl);
    y += p.out_w;
    left = left_of<V, Odd>(first, right, vl);
    x += ldx;
    if constexpr (!Left) first = x[-1];
    cur = V::fma(next, w.w5, right, vl);
    right = load_odd<V, Odd>(x, vl);
    cur = V::fma(cur, w.w3, left, vl);
    cur = V::fma(cur, w.w4, mid, vl);
    mid = V::load2(x, vl);
  }
  if (rest > 0) {
    left = left_of<V, Odd>(first, right, vl);
    cur = V::fma(cur, w.w8, right, vl);
    cur = V::fma(cur, w.w6, left, vl);
    cur = V::fma(cur, w.w7, mid, vl);
  }
  finish<V, Clamp, true>(w, cur, clean, y, vl);
  if (rest == 2) {  // an odd number of rows: the last is the middle of an output row of its own
    next = V::mul(right, w.w2, vl);
    next = V::fma(next, w.w0, left, vl);
    next = V::fma(next, w.w1, mid, vl);
    x += ldx;
    if constexpr (!Left) first = x[-1];
    right = load_odd<V, Odd>(x, vl);
    mid = V::load2(x, vl);
    left = left_of<V, Odd>(first, right, vl);
    next = V::fma(next, w.w5, right, vl);
    next = V::fma(next, w.w3, left, vl);
    next = V::fma(next, w.w4, mid, vl);
    finish<V, Clamp, true>(w, next, clean, y + p.out_w, vl);
  }
  return clean != -1;
}

template <class V, bool Clamp>
K230_INLINE bool tile(const Depthwise3x3& p, const Weights& w, int64_t col, size_t vl) {
  const bool left = col == 0;
  const bool right = col + static_cast<int64_t>(vl) == p.out_w;
  if (p.stride == 2) {
    const bool odd = right && p.in_w % 2 == 1;
    if (left) {
      return odd ? tile_stride2<V, Clamp, true, true>(p, w, col, vl)
                 : tile_stride2<V, Clamp, true, false>(p, w, col, vl);
    }
    return odd ? tile_stride2<V, Clamp, false, true>(p, w, col, vl)
               : tile_stride2<V, Clamp, false, false>(p, w, col, vl);
  }
  if (left) {
    return right ? tile_stride1<V, Clamp, true, true>(p, w, col, vl)
                 : tile_stride1<V, Clamp, true, false>(p, w, col, vl);
  }
  return right ? tile_stride1<V, Clamp, false, true>(p, w, col, vl)
               : tile_stride1<V, Clamp, false, false>(p, w, col, vl);
}

template <bool Clamp>
K230_INLINE bool plane(const Depthwise3x3& p) {
  const size_t m1 = lanes_m1();
  const Weights w = weights_of(p);
  const size_t n = static_cast<size_t>(p.out_w);
  bool nan = false;
  size_t col = 0;
  while (n - col > 2 * m1) {
    const size_t vl = M4::set(n - col < 4 * m1 ? n - col : 4 * m1);
    nan |= tile<M4, Clamp>(p, w, static_cast<int64_t>(col), vl);
    col += vl;
  }
  if (n - col > m1) {
    nan |= tile<M2, Clamp>(p, w, static_cast<int64_t>(col), M2::set(n - col));
  } else if (n > col) {
    nan |= tile<M1, Clamp>(p, w, static_cast<int64_t>(col), M1::set(n - col));
  }
  return nan;
}

// Without a branch or a floating-point comparison for each: exponents of only ones carry into the
// sign when one is added.
K230_INLINE bool all_finite(const float* v, int count) {
  uint32_t carries = 0;
  for (int i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, v + i, sizeof bits);
    carries |= (bits & 0x7f800000u) + 0x00800000u;
  }
  return (carries & 0x80000000u) == 0;
}

}  // namespace

bool depthwise3x3(const Depthwise3x3& p) {
  // An infinite weight times a zero from outside the image would make a NaN that skipping the
  // outside does not, so such planes take the code that skips everywhere.
  if (!all_finite(p.w, 9)) return detail::scalar_table().depthwise3x3(p);
  return p.clamp ? plane<true>(p) : plane<false>(p);
}

}  // namespace k230::rvv
