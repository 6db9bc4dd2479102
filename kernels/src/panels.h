// How a product is cut so that a panel of the right-hand matrix stays in the data cache.
#pragma once

#include <algorithm>
#include <cstdint>

namespace k230::detail {

// Blocks of rows x columns; a rest of fewer than slack columns joins the block before it.
struct Panels {
  int64_t rows;
  int64_t columns;
  int64_t slack;
};

// The C908's data cache: 32 KiB, taken for 4-way. A panel gets 20 KiB and three ways of any set;
// the rest is for weights and output.
constexpr int64_t kPanelFloats = 5120;
constexpr int64_t kLineFloats = 16;
constexpr int64_t kSets = 128;
constexpr int kPanelWays = 3;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether a panel of rows, ld floats apart, keeps within its ways. Images whose rows are a
// multiple of a few sets apart crowd into those.
inline bool fits_ways(int64_t rows, int64_t columns, int64_t ld) {
  unsigned char used[kSets] = {};
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r * ld / kLineFloats;
    const int64_t last = (r * ld + columns - 1) / kLineFloats;
    for (int64_t line = first; line <= last; ++line) {
      if (++used[line % kSets] > kPanelWays) return false;
    }
  }
  return true;
}

// Parts of k of about the same size, none above limit (a multiple of 4). Whole fours, because
// that is how far the product's inner loop is unrolled.
inline int64_t even_rows(int64_t k, int64_t limit) {
  return ceil_div(ceil_div(k, ceil_div(k, limit)), 4) * 4;
}

inline int64_t rows_limit(int64_t columns) {
  return std::max<int64_t>(kPanelFloats / columns / 4 * 4, 16);
}

// For x[k][n] as it lies in memory, rows n apart.
inline Panels pointwise_panels(int64_t n, int64_t k, int64_t lanes) {
  if (n <= 4 * lanes) return {even_rows(k, rows_limit(n)), n, 0};
  for (int64_t columns = kPanelFloats / k / lanes * lanes; columns >= 2 * lanes;
       columns -= lanes) {
    if (fits_ways(k, columns, n)) return {k, columns, lanes};
  }
  int64_t rows = even_rows(k, rows_limit(4 * lanes));
  while (rows > 32 && !fits_ways(rows, 4 * lanes, n)) rows = even_rows(k, rows - 4);
  return {rows, 4 * lanes, lanes};
}

// For a panel that is filled for the purpose and lies in one piece.
inline Panels im2col_panels(int64_t n, int64_t k, int64_t out_w, int64_t lanes) {
  // Whole output rows where they are short, so that they are filled in one piece.
  const int64_t limit = std::max<int64_t>(4 * lanes, 128);
  int64_t columns = out_w >= limit ? limit : limit / out_w * out_w;
  columns = std::min(columns, n);
  return {even_rows(k, rows_limit(columns)), columns, 0};
}

}  // namespace k230::detail
