// Dense layers, float32, row-major.
#pragma once

#include <cstdint>

namespace k230 {

// y[m][n] = beta * c[m][n] + alpha * sum_k a[m][k] * b[k][n]; all rows contiguous. c is read at
// c[i * c_row + j * c_col], so a bias row has c_row = 0; c is not read when beta is 0 (may be
// null). y must not overlap a, b or c. k may be 0.
struct Addmm {
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1.0f;
  float beta = 1.0f;
  int64_t c_row = 0, c_col = 0;
};
void addmm(const Addmm& shape, const float* a, const float* b, const float* c, float* y);

// y[m][n] = bias[n] + sum_k x[m][k] * w[n][k]; bias may be null.
void linear(int64_t m, int64_t n, int64_t k, const float* x, const float* w, const float* bias,
            float* y);

}  // namespace k230
