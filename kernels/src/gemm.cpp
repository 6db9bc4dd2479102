#include "k230/gemm.h"

#include <algorithm>

#include "isa_table.h"
#include "panels.h"

namespace k230 {
namespace {

using detail::GemmBlock;
using detail::IsaTable;

// y = a * b
void product(const Addmm& s, const IsaTable& isa, const float* a, const float* b, float* y) {
  if (s.k == 0) {
    std::fill(y, y + s.m * s.n, 0.0f);
    return;
  }
  if (s.m == 1) {
    isa.gemv_columns(a, b, s.n, s.k, s.n, y);
    return;
  }
  const detail::Panels cut = detail::pointwise_panels(s.n, s.k, isa.lanes);
  for (int64_t n0 = 0; n0 < s.n; n0 += cut.columns) {
    for (int64_t k0 = 0; k0 < s.k; k0 += cut.rows) {
      GemmBlock block;
      block.m = s.m;
      block.n = std::min(cut.columns, s.n - n0);
      block.k = std::min(cut.rows, s.k - k0);
      block.w = a + k0;
      block.ldw = s.k;
      block.x = b + k0 * s.n + n0;
      block.ldx = s.n;
      block.y = y + n0;
      block.ldy = s.n;
      block.first = k0 == 0;
      block.last = k0 + block.k == s.k;
      isa.gemm(block);
    }
  }
}

}  // namespace

void addmm(const Addmm& s, const float* a, const float* b, const float* c, float* y) {
  if (s.m == 0 || s.n == 0) return;
  const IsaTable& isa = detail::active();
  product(s, isa, a, b, y);
  if (s.alpha == 1.0f && s.beta == 0.0f) return;
  for (int64_t i = 0; i < s.m; ++i) {
    float* row = y + i * s.n;
    if (s.alpha != 1.0f) isa.scale_shift(row, s.n, s.alpha, 0.0f, row);
    if (s.beta == 0.0f) continue;
    if (s.c_col == 1) {
      isa.add(row, c + i * s.c_row, s.beta, s.n, row);
    } else {
      for (int64_t j = 0; j < s.n; ++j) row[j] += s.beta * c[i * s.c_row + j * s.c_col];
    }
  }
}

void linear(int64_t m, int64_t n, int64_t k, const float* x, const float* w, const float* bias,
            float* y) {
  const IsaTable& isa = detail::active();
  for (int64_t i = 0; i < m; ++i) {
    float* row = y + i * n;
    if (k == 0) {
      std::fill(row, row + n, 0.0f);
    } else {
      isa.dot_rows(x + i * k, w, k, n, k, row);
    }
    if (bias != nullptr) isa.add(row, bias, 1.0f, n, row);
  }
}

}  // namespace k230
