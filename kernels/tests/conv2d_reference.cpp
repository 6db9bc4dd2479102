#include "conv2d_reference.h"

namespace k230::test {

std::vector<Expected> reference(const Conv2dShape& s, const Buffer& x, const Buffer& w,
                                const float* bias) {
  const int64_t oh = s.out_h();
  const int64_t ow = s.out_w();
  const int64_t in_group = s.in_channels / s.groups;
  const int64_t out_group = s.out_channels / s.groups;
  const bool skip = conv2d_path(s) == Conv2dPath::kDepthwise3x3;
  std::vector<Expected> out;
  out.reserve(static_cast<std::size_t>(s.batch * s.out_channels * oh * ow));
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      for (int64_t oy = 0; oy < oh; ++oy) {
        for (int64_t ox = 0; ox < ow; ++ox) {
          Expected e;
          for (int64_t c = 0; c < in_group; ++c) {
            const int64_t channel = n * s.in_channels + oc / out_group * in_group + c;
            for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
              const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
              for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
                const int64_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
                const bool inside = iy >= 0 && iy < s.in_h && ix >= 0 && ix < s.in_w;
                if (!inside && skip) continue;
                const double v = inside ? x[(channel * s.in_h + iy) * s.in_w + ix] : 0.0;
                e.add(v * w[((oc * in_group + c) * s.kernel_h + ky) * s.kernel_w + kx]);
              }
            }
          }
          if (bias != nullptr) e.add(bias[oc]);
          out.push_back(e);
        }
      }
    }
  }
  return out;
}

std::string describe(const Conv2dShape& s) {
  char text[160];
  std::snprintf(text, sizeof text, "conv [%lld,%lld,%lld,%lld]->%lld k%lldx%lld s%lldx%lld "
                "p%lldx%lld d%lldx%lld g%lld",
                static_cast<long long>(s.batch), static_cast<long long>(s.in_channels),
                static_cast<long long>(s.in_h), static_cast<long long>(s.in_w),
                static_cast<long long>(s.out_channels), static_cast<long long>(s.kernel_h),
                static_cast<long long>(s.kernel_w), static_cast<long long>(s.stride_h),
                static_cast<long long>(s.stride_w), static_cast<long long>(s.pad_h),
                static_cast<long long>(s.pad_w), static_cast<long long>(s.dilation_h),
                static_cast<long long>(s.dilation_w), static_cast<long long>(s.groups));
  return text;
}

}  // namespace k230::test
