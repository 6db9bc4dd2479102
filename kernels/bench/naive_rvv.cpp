#include <algorithm>

#include "rvv/rvv.h"
#include "variants.h"

namespace k230::bench {

bool conv2d_naive_rvv(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  using V = rvv::M4;
  const int64_t in_per_group = s.in_channels / s.groups;
  const int64_t out_per_group = s.out_channels / s.groups;
  const int64_t oh = s.out_h();
  const int64_t ow = s.out_w();
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      const int64_t first = n * s.in_channels + oc / out_per_group * in_per_group;
      for (int64_t oy = 0; oy < oh; ++oy) {
        float* row = y + ((n * s.out_channels + oc) * oh + oy) * ow;
        for (int64_t c0 = 0; c0 < ow;) {
          const size_t vl = V::set(static_cast<size_t>(ow - c0));
          vfloat32m4_t acc = V::fill(bias != nullptr ? bias[oc] : 0.0f, vl);
          for (int64_t ic = 0; ic < in_per_group; ++ic) {
            const float* plane = x + (first + ic) * s.in_h * s.in_w;
            const float* taps = w + (oc * in_per_group + ic) * s.kernel_h * s.kernel_w;
            for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
              const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
              if (iy < 0 || iy >= s.in_h) continue;
              for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
                const int64_t shift = kx * s.dilation_w - s.pad_w + c0 * s.stride_w;
                const int64_t begin = shift < 0 ? (-shift + s.stride_w - 1) / s.stride_w : 0;
                const int64_t end = std::min(static_cast<int64_t>(vl),
                                             (s.in_w - 1 - shift) / s.stride_w + 1);
                const float* in = plane + iy * s.in_w + shift;
                if (begin == 0 && end == static_cast<int64_t>(vl)) {
                  acc = V::fma(acc, taps[ky * s.kernel_w + kx],
                               s.stride_w == 1 ? V::load(in, vl) : V::load2(in, vl), vl);
                  continue;
                }
                float padded[512];  // border: through memory, VLEN up to 4096
                std::fill(padded, padded + vl, 0.0f);
                for (int64_t i = begin; i < end; ++i) padded[i] = in[i * s.stride_w];
                acc = V::fma(acc, taps[ky * s.kernel_w + kx], V::load(padded, vl), vl);
              }
            }
          }
          V::store(row + c0, acc, vl);
          c0 += static_cast<int64_t>(vl);
        }
      }
    }
  }
  return true;
}

}  // namespace k230::bench
