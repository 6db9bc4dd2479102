#include "k230/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isa_table.h"

namespace k230 {

void clamp(const float* x, int64_t count, float low, float high, float* y) {
  if (std::isnan(low) || std::isnan(high)) {  // as torch.clamp
    std::fill(y, y + count, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  detail::active().clamp(x, count, low, high, y);
}

void add(const float* a, const float* b, float alpha, int64_t count, float* y) {
  detail::active().add(a, b, alpha, count, y);
}

void scale_shift(const float* x, int64_t count, float scale, float shift, float* y) {
  detail::active().scale_shift(x, count, scale, shift, y);
}

void mean_rows(const float* x, int64_t rows, int64_t cols, float* y) {
  const detail::IsaTable& isa = detail::active();
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = isa.sum(x + r * cols, cols) / static_cast<float>(cols);
  }
}

void transpose(const float* x, int64_t rows, int64_t cols, float* y) {
  constexpr int64_t kTile = 16;  // a cache line of each side
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = std::min(rows, r0 + kTile);
    for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
      const int64_t c1 = std::min(cols, c0 + kTile);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) y[c * rows + r] = x[r * cols + c];
      }
    }
  }
}

}  // namespace k230
