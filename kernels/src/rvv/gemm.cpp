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

// What the last block along k adds to and does with the sums. Read before anything is stored.
template <int R>
struct Finish {
  float bias[R] = {};
  float low, high;

  explicit K230_INLINE Finish(const GemmBlock& b, int64_t row) : low(b.low), high(b.high) {
    if (b.bias == nullptr) return;
    const float* from = b.bias + row;
    for (int i = 0; i < R; ++i) bias[i] = from[i];
  }
};

// Bias and clamp of rows I and I + 1, and the stores of the two rows before them. An operation
// never follows the one whose result it needs, nor a store another store.
template <class V, int R, int I, bool Last, bool Clamp>
K230_INLINE void finish(const Finish<R>& f, float* y, int64_t ldy, typename V::F32& p,
                        typename V::F32& q, typename V::F32 before_p, typename V::F32 before_q,
                        size_t vl) {
  constexpr bool kTwo = I + 1 < R;
  if constexpr (Last) {
    p = V::add(p, f.bias[I], vl);
    if constexpr (kTwo) q = V::add(q, f.bias[I + 1], vl);
  }
  if constexpr (I > 0) V::store(y + (I - 2) * ldy, before_p, vl);
  if constexpr (Last && Clamp) {
    p = V::max(p, f.low, vl);
    if constexpr (kTwo) q = V::max(q, f.low, vl);
  }
  if constexpr (I > 0) V::store(y + (I - 1) * ldy, before_q, vl);
  if constexpr (Last && Clamp) {
    p = V::min(p, f.high, vl);
    if constexpr (kTwo) q = V::min(q, f.high, vl);
  }
  if constexpr (I + 2 >= R) {
    V::store(y + I * ldy, p, vl);
    if constexpr (kTwo) V::store(y + (I + 1) * ldy, q, vl);
  }
}

template <class V, int R, bool Last, bool Clamp>
K230_INLINE void finish_all(const GemmBlock& b, int64_t row, float* y, typename V::F32 a0,
                            typename V::F32 a1, typename V::F32 a2, typename V::F32 a3,
                            typename V::F32 a4, typename V::F32 a5, size_t vl) {
  const int64_t ldy = b.ldy;
  const Finish<R> f(b, row);
  finish<V, R, 0, Last, Clamp>(f, y, ldy, a0, a1, a0, a1, vl);
  if constexpr (R > 2) finish<V, R, 2, Last, Clamp>(f, y, ldy, a2, a3, a0, a1, vl);
  if constexpr (R > 4) finish<V, R, 4, Last, Clamp>(f, y, ldy, a4, a5, a2, a3, vl);
  // Different in each instance, so that the compiler does not move their common stores to one
  // place behind them, where nothing is left to do meanwhile.
  __asm__ volatile("" : : "i"(2 * Last + Clamp));
}

// R rows from row, vl columns from col. w points to the start of the rows and is left there.
// Returns whether a NaN was seen, when check is set.
template <class V, int R>
K230_INLINE bool tile(const GemmBlock& b, Rows& w, int64_t row, int64_t col, size_t vl,
                      bool check) {
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
#define K230_FOUR(start, more)             \
  do {                                     \
    K230_STEP(start, true, xa, xb, 0);     \
    K230_STEP(false, true, xb, xa, 1);     \
    K230_STEP(false, true, xa, xb, 2);     \
    K230_STEP(false, more, xb, xa, 3);     \
    w.template advance<R>(4);              \
  } while (false)
  // Whole fours run in the loop; what k has beyond them comes first, one at a time.
  int64_t fours = b.k >= 8 ? b.k / 4 : 0;
  int64_t ones = b.k - 4 * fours;
  if (b.first && ones == 0) {
    K230_FOUR(true, true);
    --fours;
  } else {
    if (b.first) {
      K230_STEP(true, false, xa, xb, 0);
      w.template advance<R>(1);
      --ones;
    } else {
      a0 = V::load(y, vl);
      if constexpr (R > 1) a1 = V::load(y + ldy, vl);
      if constexpr (R > 2) a2 = V::load(y + 2 * ldy, vl);
      if constexpr (R > 3) a3 = V::load(y + 3 * ldy, vl);
      if constexpr (R > 4) a4 = V::load(y + 4 * ldy, vl);
      if constexpr (R > 5) a5 = V::load(y + 5 * ldy, vl);
      x -= ldx;
    }
    for (; ones > 0; --ones) {
      xa = V::load(x, vl);
      s = scalars_at<R>(w, 0);
      x += ldx;
      K230_STEP(false, false, xa, xb, 0);
      w.template advance<R>(1);
    }
    if (fours > 0) {
      xa = V::load(x, vl);
      s = scalars_at<R>(w, 0);
      x += ldx;
    }
  }
  for (; fours > 1; --fours) K230_FOUR(false, true);
  if (fours > 0) K230_FOUR(false, false);
  w.template advance<R>(-b.k);
#undef K230_FOUR
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
  if (!b.last) {
    finish_all<V, R, false, false>(b, row, y, a0, a1, a2, a3, a4, a5, vl);
  } else if (!b.clamp) {
    finish_all<V, R, true, false>(b, row, y, a0, a1, a2, a3, a4, a5, vl);
  } else {
    finish_all<V, R, true, true>(b, row, y, a0, a1, a2, a3, a4, a5, vl);
  }
  return nan;
}

// A single column that is left over would keep five of the six steps of a tile waiting for
// loads. Its x is copied into a row once for each block, so that k runs in lanes.
constexpr int64_t kColumnMost = 512;

template <int R>
K230_INLINE void single(const GemmBlock& b, const Rows& w, int64_t row, int64_t col,
                        const float* column) {
  const auto k = static_cast<size_t>(b.k);
  const size_t vl = M2::set(k);
  vfloat32m2_t a0 = M2::fill(0.0f, vl);
  vfloat32m2_t a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0;
  size_t i = 0;
  for (; i + vl <= k; i += vl) {
    const vfloat32m2_t x = M2::load(column + i, vl);
    a0 = M2::fma(a0, x, M2::load(w.p0 + i, vl), vl);
    if constexpr (R > 1) a1 = M2::fma(a1, x, M2::load(w.p1 + i, vl), vl);
    if constexpr (R > 2) a2 = M2::fma(a2, x, M2::load(w.p2 + i, vl), vl);
    if constexpr (R > 3) a3 = M2::fma(a3, x, M2::load(w.p3 + i, vl), vl);
    if constexpr (R > 4) a4 = M2::fma(a4, x, M2::load(w.p4 + i, vl), vl);
    if constexpr (R > 5) a5 = M2::fma(a5, x, M2::load(w.p5 + i, vl), vl);
  }
  float sums[R];
  sums[0] = M2::sum(a0, vl);
  if constexpr (R > 1) sums[1] = M2::sum(a1, vl);
  if constexpr (R > 2) sums[2] = M2::sum(a2, vl);
  if constexpr (R > 3) sums[3] = M2::sum(a3, vl);
  if constexpr (R > 4) sums[4] = M2::sum(a4, vl);
  if constexpr (R > 5) sums[5] = M2::sum(a5, vl);
  const float* weights = b.w + row * b.ldw;
  float* y = b.y + row * b.ldy + col;
  for (int r = 0; r < R; ++r) {
    float v = sums[r];
    for (size_t j = i; j < k; ++j) v += weights[r * b.ldw + static_cast<int64_t>(j)] * column[j];
    if (!b.first) v += y[r * b.ldy];
    if (b.last) {
      if (b.bias != nullptr) v += b.bias[row + r];
      if (b.clamp) {  // comparisons leave NaN alone
        v = v < b.low ? b.low : v;
        v = v > b.high ? b.high : v;
      }
    }
    y[r * b.ldy] = v;
  }
}

// R rows over all columns: full tiles of four registers, the rest in the smallest group that holds
// it, because a short vector costs as much as a full one of its size.
template <int R>
__attribute__((noinline)) bool strip(const GemmBlock& b, int64_t row, size_t m1,
                                     const float* column) {
  const bool watch = b.last && b.clamp;
  const bool edge_row = watch && row == 0;
  const size_t n = static_cast<size_t>(b.n);
  bool check = watch && (edge_row || b.edge_columns);
  Rows w{};
  w.p0 = b.w + row * b.ldw;
  if constexpr (R > 1) w.p1 = w.p0 + b.ldw;
  if constexpr (R > 2) w.p2 = w.p1 + b.ldw;
  if constexpr (R > 3) w.p3 = w.p2 + b.ldw;
  if constexpr (R > 4) w.p4 = w.p3 + b.ldw;
  if constexpr (R > 5) w.p5 = w.p4 + b.ldw;
  bool nan = false;
  size_t col = 0;
  while (n - col > 2 * m1) {
    const size_t vl = M4::set(n - col < 4 * m1 ? n - col : 4 * m1);
    nan |= tile<M4, R>(b, w, row, col, vl, check);
    check = edge_row;
    col += vl;
  }
  if (column != nullptr && n - col == 1) {
    single<R>(b, w, row, static_cast<int64_t>(col), column);
  } else if (n - col > m1) {
    nan |= tile<M2, R>(b, w, row, col, M2::set(n - col), check);
  } else if (n > col) {
    nan |= tile<M1, R>(b, w, row, col, M1::set(n - col), check);
  }
  return nan;
}

}  // namespace

bool gemm(const GemmBlock& b) {
  const size_t m1 = lanes_m1();
  float copied[kColumnMost];
  const float* column = nullptr;
  if (static_cast<size_t>(b.n) % (4 * m1) == 1 && b.k <= kColumnMost) {
    for (int64_t k = 0; k < b.k; ++k) copied[k] = b.x[k * b.ldx + b.n - 1];
    column = copied;
  }
  bool nan = false;
  int64_t row = 0;
  while (row < b.m) {
    // 8 = 4 + 4 and 7 = 4 + 3 keep the vector unit busier than 6 + 2 and 6 + 1
    const int64_t rest = b.m - row;
    const int64_t rows = rest == 8 || rest == 7 ? 4 : rest < 6 ? rest : 6;
    switch (rows) {
      case 1: nan |= strip<1>(b, row, m1, column); break;
      case 2: nan |= strip<2>(b, row, m1, column); break;
      case 3: nan |= strip<3>(b, row, m1, column); break;
      case 4: nan |= strip<4>(b, row, m1, column); break;
      case 5: nan |= strip<5>(b, row, m1, column); break;
      default: nan |= strip<6>(b, row, m1, column); break;
    }
    row += rows;
  }
  return nan;
}

}  // namespace k230::rvv
