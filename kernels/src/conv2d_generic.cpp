// Convolution and transposed convolution over any strides.
#include "k230/conv2d.h"
#include "k230/elementwise.h"

namespace k230 {
namespace {

struct Taps {
  int64_t n, group;  // image and group
  int64_t oc;        // output channel within the group
  int64_t oy, ox;
};

float direct(const Conv2dGeneric& g, const float* x, const float* w, const Taps& t) {
  const Conv2dShape& s = g.shape;
  const int64_t in_per_group = s.in_channels / s.groups;
  const int64_t oc = t.group * (s.out_channels / s.groups) + t.oc;
  float acc = 0.0f;
  for (int64_t c = 0; c < in_per_group; ++c) {
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      const int64_t iy = t.oy * s.stride_h - s.pad_h + ky * s.dilation_h;
      if (iy < 0 || iy >= s.in_h) continue;
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t ix = t.ox * s.stride_w - s.pad_w + kx * s.dilation_w;
        if (ix < 0 || ix >= s.in_w) continue;
        const int64_t channel = t.group * in_per_group + c;
        acc += x[t.n * g.x.n + channel * g.x.c + iy * g.x.h + ix * g.x.w] *
               w[oc * g.w.n + c * g.w.c + ky * g.w.h + kx * g.w.w];
      }
    }
  }
  return acc;
}

// The input position that kernel position k adds to output position o, or -1.
int64_t source(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t dilation, int64_t in) {
  const int64_t scaled = o + pad - k * dilation;
  if (scaled < 0 || scaled % stride != 0) return -1;
  return scaled / stride < in ? scaled / stride : -1;
}

float transposed(const Conv2dGeneric& g, const float* x, const float* w, const Taps& t) {
  const Conv2dShape& s = g.shape;
  const int64_t in_per_group = s.in_channels / s.groups;
  float acc = 0.0f;
  for (int64_t c = 0; c < in_per_group; ++c) {
    const int64_t channel = t.group * in_per_group + c;
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      const int64_t iy = source(t.oy, ky, s.stride_h, s.pad_h, s.dilation_h, s.in_h);
      if (iy < 0) continue;
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t ix = source(t.ox, kx, s.stride_w, s.pad_w, s.dilation_w, s.in_w);
        if (ix < 0) continue;
        acc += x[t.n * g.x.n + channel * g.x.c + iy * g.x.h + ix * g.x.w] *
               w[channel * g.w.n + t.oc * g.w.c + ky * g.w.h + kx * g.w.w];
      }
    }
  }
  return acc;
}

}  // namespace

void conv2d_generic(const Conv2dGeneric& g, const float* x, const float* w, const float* bias,
                    Clamp clamp, float* y) {
  const Conv2dShape& s = g.shape;
  const int64_t out_per_group = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      for (int64_t oy = 0; oy < g.out_h; ++oy) {
        for (int64_t ox = 0; ox < g.out_w; ++ox) {
          const Taps t = {n, oc / out_per_group, oc % out_per_group, oy, ox};
          float v = g.transposed ? transposed(g, x, w, t) : direct(g, x, w, t);
          if (bias != nullptr) v += bias[oc * g.bias_stride];
          if (clamp.active()) k230::clamp(&v, 1, clamp.low, clamp.high, &v);
          y[n * g.y.n + oc * g.y.c + oy * g.y.h + ox * g.y.w] = v;
        }
      }
    }
  }
}

}  // namespace k230
