#include <algorithm>
#include <vector>

#include "rvv/rvv.h"
#include "variants.h"

namespace k230::bench {
namespace {

// Which of vl output columns read inside the image at one kernel column, and where they begin.
struct Span {
  int64_t shift, begin, end;
};

}  // namespace

bool conv2d_naive_rvv(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  using V = rvv::M4;
  const int64_t in_per_group = s.in_channels / s.groups;
  const int64_t out_per_group = s.out_channels / s.groups;
  const int64_t oh = s.out_h();
  const int64_t ow = s.out_w();
  const int64_t taps = s.kernel_h * s.kernel_w;
  std::vector<Span> spans(static_cast<size_t>(s.kernel_w));
  float padded[512];  // columns at the border go through memory; VLEN up to 4096
  for (int64_t plane = 0; plane < s.batch * s.out_channels; ++plane) {
    const int64_t n = plane / s.out_channels;
    const int64_t oc = plane % s.out_channels;
    const int64_t first = n * s.in_channels + oc / out_per_group * in_per_group;
    const float* image = x + first * s.in_h * s.in_w;
    for (int64_t c0 = 0; c0 < ow;) {
      const size_t vl = V::set(static_cast<size_t>(ow - c0));
      const auto count = static_cast<int64_t>(vl);
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t shift = kx * s.dilation_w - s.pad_w + c0 * s.stride_w;
        spans[static_cast<size_t>(kx)] = {
            shift, shift < 0 ? (-shift + s.stride_w - 1) / s.stride_w : 0,
            std::min(count, (s.in_w - 1 - shift) / s.stride_w + 1)};
      }
      for (int64_t oy = 0; oy < oh; ++oy) {
        vfloat32m4_t acc = V::fill(bias != nullptr ? bias[oc] : 0.0f, vl);
        for (int64_t ic = 0; ic < in_per_group; ++ic) {
          const float* weights = w + (oc * in_per_group + ic) * taps;
          for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
            const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
            if (iy < 0 || iy >= s.in_h) continue;
            const float* row = image + (ic * s.in_h + iy) * s.in_w;
            for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
              const Span& span = spans[static_cast<size_t>(kx)];
              const float* in = row + span.shift;
              if (span.begin != 0 || span.end != count) {
                std::fill(padded, padded + count, 0.0f);
                for (int64_t i = span.begin; i < span.end; ++i) padded[i] = in[i * s.stride_w];
                in = padded;
              }
              const bool dense = s.stride_w == 1 || in == padded;
              acc = V::fma(acc, weights[ky * s.kernel_w + kx],
                           dense ? V::load(in, vl) : V::load2(in, vl), vl);
            }
          }
        }
        V::store(y + (plane * oh + oy) * ow + c0, acc, vl);
      }
      c0 += count;
    }
  }
  return true;
}

}  // namespace k230::bench
