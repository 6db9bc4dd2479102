// How a product is cut so that a panel of the right-hand matrix stays in the 32 KiB data cache.
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

constexpr int64_t kPanelFloats = 5120;  // 20 KiB: room is left for weights and output

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Even parts of k, none above limit.
inline int64_t even_rows(int64_t k, int64_t limit) { return ceil_div(k, ceil_div(k, limit)); }

inline Panels pointwise_panels(int64_t n, int64_t k, int64_t lanes) {
  if (n <= 4 * lanes) return {even_rows(k, std::max<int64_t>(kPanelFloats / n, 32)), n, 0};
  const int64_t whole_k = kPanelFloats / k / lanes * lanes;
  if (whole_k >= 2 * lanes) return {k, whole_k, lanes};
  return {even_rows(k, std::max<int64_t>(kPanelFloats / (4 * lanes), 32)), 4 * lanes, lanes};
}

inline Panels im2col_panels(int64_t n, int64_t k, int64_t out_w, int64_t lanes) {
  // Whole output rows where they are short, so that they are filled in one piece.
  const int64_t limit = std::max<int64_t>(4 * lanes, 128);
  int64_t columns = out_w >= limit ? limit : limit / out_w * out_w;
  columns = std::min(columns, n);
  return {even_rows(k, std::max<int64_t>(kPanelFloats / columns, 16)), columns, 0};
}

}  // namespace k230::detail
