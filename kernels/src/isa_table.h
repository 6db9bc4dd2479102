// The primitives that exist once per instruction set. Drivers (conv2d.cpp, gemm.cpp, ...) decide
// blocking and order; everything in here is a loop over memory.
#pragma once

#include <cstdint>

namespace k230::detail {

// One block of y[m][n] (+)= w[m][k] * x[k][n].
struct GemmBlock {
  int64_t m = 0, n = 0, k = 0;  // k >= 1
  const float* w = nullptr;
  int64_t ldw = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  float* y = nullptr;
  int64_t ldy = 0;
  bool first = true;            // y is written, not added to
  bool last = true;             // bias and clamp apply
  const float* bias = nullptr;  // per row, or null; only with last
  bool clamp = false;           // only with last
  float low = 0, high = 0;
  bool edge_columns = true;     // n starts at column 0 of the whole product
};

// One channel of a depthwise 3x3 convolution with padding 1 and stride 1 or 2.
struct Depthwise3x3 {
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t stride = 1;
  const float* x = nullptr;
  const float* w = nullptr;  // 9 weights
  float bias = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* y = nullptr;
};

// Vector minimum and maximum drop NaN, so the fast clamp would. gemm and depthwise3x3 therefore
// return true when a NaN input may have reached a clamped output, and nan_watch_* tell whether an
// arithmetic operation has created one; the driver then repeats the work without a clamp and
// clamps exactly. Scalar code keeps NaN by itself and always returns false.
struct IsaTable {
  int64_t lanes;  // pixels of one full register tile
  bool (*gemm)(const GemmBlock& block);
  bool (*depthwise3x3)(const Depthwise3x3& plane);
  unsigned (*nan_watch_begin)();
  bool (*nan_watch_end)(unsigned state);
  void (*copy_strided)(const float* x, int64_t stride, int64_t count, float* y);
  void (*dot_rows)(const float* x, const float* w, int64_t ldw, int64_t rows, int64_t k, float* y);
  void (*gemv_columns)(const float* a, const float* b, int64_t ldb, int64_t k, int64_t n,
                       float* y);
  void (*clamp)(const float* x, int64_t count, float low, float high, float* y);
  void (*add)(const float* a, const float* b, float alpha, int64_t count, float* y);
  void (*scale_shift)(const float* x, int64_t count, float scale, float shift, float* y);
  float (*sum)(const float* x, int64_t count);
};

const IsaTable& active();
const IsaTable& scalar_table();
#ifdef K230_KERNELS_RVV
const IsaTable& rvv_table();
#endif

}  // namespace k230::detail
