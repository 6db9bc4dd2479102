#include "variants.h"

namespace k230::bench {
namespace {

struct Index4 {
  int64_t at[4];
};

__attribute__((noinline)) int64_t linear_index(const Index4& i, const int64_t* strides) {
  int64_t index = 0;
  for (int d = 0; d < 4; ++d) index += i.at[d] * strides[d];
  return index;
}

}  // namespace

void conv2d_portable_shape(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                           float* y) {
  const int64_t in_per_group = s.in_channels / s.groups;
  const int64_t out_per_group = s.out_channels / s.groups;
  const int64_t oh = s.out_h();
  const int64_t ow = s.out_w();
  const int64_t xs[4] = {s.in_channels * s.in_h * s.in_w, s.in_h * s.in_w, s.in_w, 1};
  const int64_t ws[4] = {in_per_group * s.kernel_h * s.kernel_w, s.kernel_h * s.kernel_w,
                         s.kernel_w, 1};
  const int64_t ys[4] = {s.out_channels * oh * ow, oh * ow, ow, 1};
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      const int64_t first = oc / out_per_group * in_per_group;
      for (int64_t oy = 0; oy < oh; ++oy) {
        for (int64_t ox = 0; ox < ow; ++ox) {
          float acc = 0.0f;
          for (int64_t ic = 0; ic < in_per_group; ++ic) {
            for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
              const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
              for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
                const int64_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
                if (iy < 0 || iy >= s.in_h || ix < 0 || ix >= s.in_w) continue;
                const Index4 xi = {{n, first + ic, iy, ix}};
                const Index4 wi = {{oc, ic, ky, kx}};
                acc += x[linear_index(xi, xs)] * w[linear_index(wi, ws)];
              }
            }
          }
          const Index4 yi = {{n, oc, oy, ox}};
          y[linear_index(yi, ys)] = acc + (bias != nullptr ? bias[oc] : 0.0f);
        }
      }
    }
  }
}

}  // namespace k230::bench
