// The primitives in plain C++: the reference for reading, and what runs without a vector unit.
#include <cstddef>

#include "../isa_table.h"

namespace k230::detail {
namespace {

// Comparisons with NaN are false, so NaN passes through.
float clamped(float v, float low, float high) {
  v = v < low ? low : v;
  return v > high ? high : v;
}

bool gemm(const GemmBlock& b) {
  for (int64_t row = 0; row < b.m; ++row) {
    const float* w = b.w + row * b.ldw;
    float* y = b.y + row * b.ldy;
    for (int64_t k = 0; k < b.k; ++k) {
      const float s = w[k];
      const float* x = b.x + k * b.ldx;
      if (b.first && k == 0) {
        for (int64_t i = 0; i < b.n; ++i) y[i] = s * x[i];
      } else {
        for (int64_t i = 0; i < b.n; ++i) y[i] += s * x[i];
      }
    }
    if (!b.last) continue;
    const float bias = b.bias != nullptr ? b.bias[row] : 0.0f;
    for (int64_t i = 0; i < b.n; ++i) y[i] += bias;
    if (b.clamp) {
      for (int64_t i = 0; i < b.n; ++i) y[i] = clamped(y[i], b.low, b.high);
    }
  }
  return false;
}

bool depthwise3x3(const Depthwise3x3& p) {
  for (int64_t row = 0; row < p.out_h; ++row) {
    for (int64_t col = 0; col < p.out_w; ++col) {
      float acc = 0.0f;
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t r = row * p.stride + i - 1;
        if (r < 0 || r >= p.in_h) continue;
        for (int64_t j = 0; j < 3; ++j) {
          const int64_t c = col * p.stride + j - 1;
          if (c >= 0 && c < p.in_w) acc += p.w[i * 3 + j] * p.x[r * p.in_w + c];
        }
      }
      acc += p.bias;
      p.y[row * p.out_w + col] = p.clamp ? clamped(acc, p.low, p.high) : acc;
    }
  }
  return false;
}

unsigned nan_watch_begin() { return 0; }
bool nan_watch_end(unsigned) { return false; }

void copy_strided(const float* x, int64_t stride, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
}

void dot_rows(const float* x, const float* w, int64_t ldw, int64_t rows, int64_t k, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    float acc = 0.0f;
    for (int64_t i = 0; i < k; ++i) acc += x[i] * w[r * ldw + i];
    y[r] = acc;
  }
}

void gemv_columns(const float* a, const float* b, int64_t ldb, int64_t k, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 0.0f;
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < n; ++i) y[i] += a[j] * b[j * ldb + i];
  }
}

void clamp(const float* x, int64_t count, float low, float high, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = clamped(x[i], low, high);
}

void add(const float* a, const float* b, float alpha, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] + alpha * b[i];
}

void scale_shift(const float* x, int64_t count, float scale, float shift, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale + shift;
}

float sum(const float* x, int64_t count) {
  float total = 0.0f;
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

}  // namespace

const IsaTable& scalar_table() {
  static const IsaTable table = {
      16,           gemm,     depthwise3x3, nan_watch_begin, nan_watch_end, copy_strided,
      dot_rows,     gemv_columns, clamp,        add,             scale_shift,   sum,
  };
  return table;
}

}  // namespace k230::detail
