// Element-wise operations and reductions over contiguous float32 buffers.
#pragma once

#include <cstdint>

namespace k230 {

// y[i] = x[i] clamped to [low, high]; NaN stays NaN; low > high gives high, as in torch.
// y may be x.
void clamp(const float* x, int64_t count, float low, float high, float* y);

// y[i] = a[i] + alpha * b[i]. y may be a or b.
void add(const float* a, const float* b, float alpha, int64_t count, float* y);

// y[i] = x[i] * scale + shift, the body of an inference batch norm. y may be x.
void scale_shift(const float* x, int64_t count, float scale, float shift, float* y);

// y[row] = mean of x[row][0 .. cols), rows contiguous. cols 0 gives NaN.
void mean_rows(const float* x, int64_t rows, int64_t cols, float* y);

// y[c][r] = x[r][c]. y must not overlap x.
void transpose(const float* x, int64_t rows, int64_t cols, float* y);

}  // namespace k230
