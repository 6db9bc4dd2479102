// 2-D convolution, float32, NCHW-contiguous input, weight and output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace k230 {

// Shapes of one convolution. Weight is [out_channels][in_channels / groups][kernel_h][kernel_w].
// All members must be consistent (see conv2d_valid); sizes may be 0 for batch and channels.
struct Conv2dShape {
  int64_t batch = 1;
  int64_t in_channels = 0;
  int64_t in_h = 0;
  int64_t in_w = 0;
  int64_t out_channels = 0;
  int64_t kernel_h = 1;
  int64_t kernel_w = 1;
  int64_t stride_h = 1;
  int64_t stride_w = 1;
  int64_t pad_h = 0;
  int64_t pad_w = 0;
  int64_t dilation_h = 1;
  int64_t dilation_w = 1;
  int64_t groups = 1;

  int64_t out_h() const;
  int64_t out_w() const;
};

// Bounds applied to the output as torch.clamp does: NaN stays NaN. The default bounds nothing.
struct Clamp {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool active() const {
    return low > -std::numeric_limits<float>::infinity() ||
           high < std::numeric_limits<float>::infinity();
  }
};

// Which algorithm conv2d() takes for a shape.
enum class Conv2dPath { kEmpty, kPointwise, kDepthwise3x3, kIm2col };

bool conv2d_valid(const Conv2dShape& shape);
Conv2dPath conv2d_path(const Conv2dShape& shape);

// Bytes of scratch that conv2d() wants for this shape; 0 for pointwise and depthwise 3x3.
std::size_t conv2d_scratch_bytes(const Conv2dShape& shape);

// y = clamp(conv(x, w) + bias). bias may be null. scratch: conv2d_scratch_bytes() bytes, aligned
// to 64. Buffers must not overlap. Needs conv2d_valid(shape).
void conv2d(const Conv2dShape& shape, const float* x, const float* w, const float* bias,
            Clamp clamp, float* y, void* scratch);

// A tensor of rank 4 with any strides (in elements).
struct Strides4 {
  int64_t n = 0, c = 0, h = 0, w = 0;
};

// The same convolution for any memory layout, without scratch, one multiplication at a time: slow
// and correct. With transposed set it is the transposed convolution: weight is
// [in_channels][out_channels / groups][kernel_h][kernel_w], and out_h, out_w are given because
// output padding makes them free.
struct Conv2dGeneric {
  Conv2dShape shape;
  bool transposed = false;
  int64_t out_h = 0;
  int64_t out_w = 0;
  Strides4 x, w, y;
  int64_t bias_stride = 1;
};
void conv2d_generic(const Conv2dGeneric& g, const float* x, const float* w, const float* bias,
                    Clamp clamp, float* y);

}  // namespace k230
