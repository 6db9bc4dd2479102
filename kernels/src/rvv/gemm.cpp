// y[m][n] (+)= w[m][k] * x[k][n]: columns in lanes, weights as scalars, nothing packed.
//
// A tile is up to 6 rows of four registers: 24 accumulators, and 2 x 4 registers for x, the next
// row being loaded while the present one is used. The order of the instructions inside a step
// matters on an in-order core: a scalar load directly behind a vector load waits until that one
// has left the load unit, so two multiplications stand between them.
#include "../isa_table.h"
#include "primitives.h"
#include "rvv.h"

namespace k230::rvv {
namespace {

using detail::GemmBlock;

// Pointers into up to six rows of w; rows beyond R are not touched.
struct Rows {
  const float *p0, *p1, *p2, *p3, *p4, *p5;

  template <int R>
  K230_INLINE void advance(int64_t k) {
    p0 += k;
    if constexpr (R > 1) p1 += k;
    if constexpr (R > 2) p2 += k;
    if constexpr (R > 3) p3 += k;
    if constexpr (R > 4) p4 += k;
    if constexpr (R > 5) p5 += k;
  }
};

struct Scalars {
  float s0, s1, s2, s3, s4, s5;
};

template <int R>
K230_INLINE Scalars scalars_at(const Rows& w, int64_t k) {
  Scalars s{};
  s.s0 = w.p0[k];
  if constexpr (R > 1) s.s1 = w.p1[k];
  if constexpr (R > 2) s.s2 = w.p2[k];
  if constexpr (R > 3) s.s3 = w.p3[k];
  if constexpr (R > 4) s.s4 = w.p4[k];
  if constexpr (R > 5) s.s5 = w.p5[k];
  return s;
}

// acc += w[k] * now, or acc = w[k] * now with Start. With Next, also loads the following row of x
// and its weights. A row that R leaves out costs nothing.
template <class V, int R, bool Start, bool Next>
K230_INLINE void step(typename V::F32& a0, typename V::F32& a1, typename V::F32& a2,
                      typename V::F32& a3, typename V::F32& a4, typename V::F32& a5,
                      typename V::F32 now, typename V::F32& next, const float*& x, int64_t ldx,
                      const Rows& w, int64_t k, Scalars& s, size_t vl) {
  Scalars t{};
  a0 = Start ? V::mul(now, s.s0, vl) : V::fma(a0, s.s0, now, vl);
  if constexpr (Next) {
    next = V::load(x, vl);
    x += ldx;
  }
  if constexpr (R > 1) a1 = Start ? V::mul(now, s.s1, vl) : V::fma(a1, s.s1, now, vl);
  if constexpr (R > 2) a2 = Start ? V::mul(now, s.s2, vl) : V::fma(a2, s.s2, now, vl);
  if constexpr (Next) {
    t.s0 = w.p0[k + 1];
    if constexpr (R > 1) t.s1 = w.p1[k + 1];
  }
  if constexpr (R > 3) a3 = Start ? V::mul(now, s.s3, vl) : V::fma(a3, s.s3, now, vl);
  if constexpr (Next) {
    if constexpr (R > 2) t.s2 = w.p2[k + 1];
    if constexpr (R > 3) t.s3 = w.p3[k + 1];
  }
  if constexpr (R > 4) a4 = Start ? V::mul(now, s.s4, vl) : V::fma(a4, s.s4, now, vl);
  if constexpr (Next) {
    if constexpr (R > 4) t.s4 = w.p4[k + 1];
    if constexpr (R > 5) t.s5 = w.p5[k + 1];
  }
  if constexpr (R > 5) a5 = Start ? V::mul(now, s.s5, vl) : V::fma(a5, s.s5, now, vl);
  if constexpr (Next) s = t;
}

// Two rows to memory. They are finished together so that no operation waits for the one before.
template <class V, bool Two>
K230_INLINE void finish(const GemmBlock& b, int64_t row, typename V::F32 p, typename V::F32 q,
                        float* y, size_t vl) {
  if (b.last) {
    if (b.bias != nullptr) {
      p = V::add(p, b.bias[row], vl);
      if constexpr (Two) q = V::add(q, b.bias[row + 1], vl);
    }
    if (b.clamp) {
      p = V::max(p, b.low, vl);
      if constexpr (Two) q = V::max(q, b.low, vl);
      p = V::min(p, b.high, vl);
      if constexpr (Two) q = V::min(q, b.high, vl);
    }
  }
  V::store(y, p, vl);
  if constexpr (Two) V::store(y + b.ldy, q, vl);
}

// R rows from row, vl columns from col. Returns whether a NaN was seen, when check is set.
template <class V, int R>
K230_INLINE bool tile(const GemmBlock& b, int64_t row, int64_t col, size_t vl, bool check) {
  Rows w{};
  w.p0 = b.w + row * b.ldw;
  if constexpr (R > 1) w.p1 = w.p0 + b.ldw;
  if constexpr (R > 2) w.p2 = w.p1 + b.ldw;
  if constexpr (R > 3) w.p3 = w.p2 + b.ldw;
  if constexpr (R > 4) w.p4 = w.p3 + b.ldw;
  if constexpr (R > 5) w.p5 = w.p4 + b.ldw;
  const int64_t ldx = b.ldx;
  const int64_t ldy = b.ldy;
  const float* x = b.x + col;
  float* y = b.y + row * ldy + col;

  Scalars s = scalars_at<R>(w, 0);
  typename V::F32 xa = V::load(x, vl);
  typename V::F32 xb, a0, a1, a2, a3, a4, a5;
  x += ldx;
#define K230_STEP(start, more, now, next, k) \
  step<V, R, start, more>(a0, a1, a2, a3, a4, a5, now, next, x, ldx, w, k, s, vl)
  int64_t rest = b.k;
  if (!b.first) {
    a0 = V::load(y, vl);
    if constexpr (R > 1) a1 = V::load(y + ldy, vl);
    if constexpr (R > 2) a2 = V::load(y + 2 * ldy, vl);
    if constexpr (R > 3) a3 = V::load(y + 3 * ldy, vl);
    if constexpr (R > 4) a4 = V::load(y + 4 * ldy, vl);
    if constexpr (R > 5) a5 = V::load(y + 5 * ldy, vl);
  } else if (rest > 1) {
    K230_STEP(true, true, xa, xb, 0);
    xa = xb;
    w.template advance<R>(1);
    --rest;
  } else {
    K230_STEP(true, false, xa, xb, 0);
    rest = 0;
  }
  for (; rest > 4; rest -= 4) {
    K230_STEP(false, true, xa, xb, 0);
    K230_STEP(false, true, xb, xa, 1);
    K230_STEP(false, true, xa, xb, 2);
    K230_STEP(false, true, xb, xa, 3);
    w.template advance<R>(4);
  }
  if (rest > 1) {
    K230_STEP(false, true, xa, xb, 0);
    if (rest > 2) {
      K230_STEP(false, true, xb, xa, 1);
      if (rest > 3) {
        K230_STEP(false, true, xa, xb, 2);
        K230_STEP(false, false, xb, xa, 3);
      } else {
        K230_STEP(false, false, xa, xb, 2);
      }
    } else {
      K230_STEP(false, false, xb, xa, 1);
    }
  } else if (rest == 1) {
    K230_STEP(false, false, xa, xb, 0);
  }
#undef K230_STEP

  bool nan = false;
  if (check) {
    typename V::F32 sum = a0;
    if constexpr (R > 1) sum = V::add(sum, a1, vl);
    if constexpr (R > 2) sum = V::add(sum, a2, vl);
    if constexpr (R > 3) sum = V::add(sum, a3, vl);
    if constexpr (R > 4) sum = V::add(sum, a4, vl);
    if constexpr (R > 5) sum = V::add(sum, a5, vl);
    nan = V::any_nan(sum, vl);
  }
  finish<V, (R > 1)>(b, row, a0, a1, y, vl);
  if constexpr (R > 2) finish<V, (R > 3)>(b, row + 2, a2, a3, y + 2 * ldy, vl);
  if constexpr (R > 4) finish<V, (R > 5)>(b, row + 4, a4, a5, y + 4 * ldy, vl);
  return nan;
}

// R rows over all columns: full tiles of four registers, the rest in the smallest group that holds
// it, because a short vector costs as much as a full one of its size.
template <int R>
__attribute__((noinline)) bool strip(const GemmBlock& b, int64_t row, size_t m1) {
  const bool watch = b.last && b.clamp;
  const bool edge_row = watch && row == 0;
  const size_t n = static_cast<size_t>(b.n);
  bool check = watch && (edge_row || b.edge_columns);
  bool nan = false;
  size_t col = 0;
  while (n - col > 2 * m1) {
    const size_t vl = M4::set(n - col < 4 * m1 ? n - col : 4 * m1);
    nan |= tile<M4, R>(b, row, col, vl, check);
    check = edge_row;
    col += vl;
  }
  if (n - col > m1) {
    nan |= tile<M2, R>(b, row, col, M2::set(n - col), check);
  } else if (n > col) {
    nan |= tile<M1, R>(b, row, col, M1::set(n - col), check);
  }
  return nan;
}

}  // namespace

bool gemm(const GemmBlock& b) {
  const size_t m1 = lanes_m1();
  bool nan = false;
  int64_t row = 0;
  while (row < b.m) {
    // 8 = 4 + 4 and 7 = 4 + 3 keep the vector unit busier than 6 + 2 and 6 + 1
    const int64_t rest = b.m - row;
    const int64_t rows = rest == 8 || rest == 7 ? 4 : rest < 6 ? rest : 6;
    switch (rows) {
      case 1: nan |= strip<1>(b, row, m1); break;
      case 2: nan |= strip<2>(b, row, m1); break;
      case 3: nan |= strip<3>(b, row, m1); break;
      case 4: nan |= strip<4>(b, row, m1); break;
      case 5: nan |= strip<5>(b, row, m1); break;
      default: nan |= strip<6>(b, row, m1); break;
    }
    row += rows;
  }
  return nan;
}

}  // namespace k230::rvv
