// Which algorithm a convolution takes, and how it is cut into blocks that stay in the cache.
#include "k230/conv2d.h"

#include <algorithm>

#include "isa_table.h"
#include "k230/elementwise.h"
#include "panels.h"

namespace k230 {
namespace {

using detail::GemmBlock;
using detail::IsaTable;
using detail::Panels;

int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

// One group of one image: y[m][pixels] = w[m][k] * patches[k][pixels].
struct GroupArgs {
  const float* x;
  const float* w;
  const float* bias;
  float* y;
};

// Fills panel[k_count][n_count] with the input values under kernel position k0 + i (channel,
// kernel row, kernel column) for output pixels n0 + j; columns outside the image are zero.
void fill_panel(const Conv2dShape& s, const IsaTable& isa, const float* x, int64_t k0,
                int64_t k_count, int64_t n0, int64_t n_count, float* panel) {
  const int64_t out_w = s.out_w();
  for (int64_t i = 0; i < k_count; ++i) {
    const int64_t k = k0 + i;
    const int64_t kx = k % s.kernel_w;
    const int64_t ky = k / s.kernel_w % s.kernel_h;
    const float* plane = x + k / (s.kernel_w * s.kernel_h) * s.in_h * s.in_w;
    float* row = panel + i * n_count;
    const int64_t shift = kx * s.dilation_w - s.pad_w;
    for (int64_t n = n0; n < n0 + n_count;) {
      const int64_t oy = n / out_w;
      const int64_t ox = n % out_w;
      const int64_t count = std::min(out_w - ox, n0 + n_count - n);
      const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
      // output columns [begin, end) of this piece read inside the image
      int64_t begin = ox + count;
      int64_t end = begin;
      if (iy >= 0 && iy < s.in_h && shift < s.in_w) {
        begin = shift >= 0 ? ox : std::max(ox, (-shift + s.stride_w - 1) / s.stride_w);
        end = std::min(ox + count, (s.in_w - 1 - shift) / s.stride_w + 1);
        begin = std::min(begin, ox + count);
        end = std::max(end, begin);
      }
      std::fill(row, row + (begin - ox), 0.0f);
      if (end > begin) {
        isa.copy_strided(plane + iy * s.in_w + begin * s.stride_w + shift, s.stride_w, end - begin,
                         row + (begin - ox));
      }
      std::fill(row + (end - ox), row + count, 0.0f);
      row += count;
      n += count;
    }
  }
}

bool run_gemm(const Conv2dShape& s, const IsaTable& isa, const GroupArgs& g, const Clamp* clamp,
              bool pointwise, float* panel) {
  const int64_t m = s.out_channels / s.groups;
  const int64_t k = s.in_channels / s.groups * s.kernel_h * s.kernel_w;
  const int64_t n = s.out_h() * s.out_w();
  const Panels cut = pointwise ? detail::pointwise_panels(n, k, isa.lanes)
                               : detail::im2col_panels(n, k, s.out_w(), isa.lanes);
  bool nan = false;
  for (int64_t n0 = 0; n0 < n; n0 += cut.columns) {
    const int64_t columns = n - n0 < 2 * cut.columns && n - n0 - cut.columns < cut.slack
                                ? n - n0
                                : std::min(cut.columns, n - n0);
    for (int64_t k0 = 0; k0 < k; k0 += cut.rows) {
      GemmBlock b;
      b.m = m;
      b.n = columns;
      b.k = std::min(cut.rows, k - k0);
      b.w = g.w + k0;
      b.ldw = k;
      if (pointwise) {
        b.x = g.x + k0 * n + n0;
        b.ldx = n;
      } else {
        fill_panel(s, isa, g.x, k0, b.k, n0, columns, panel);
        b.x = panel;
        b.ldx = columns;
      }
      b.y = g.y + n0;
      b.ldy = n;
      b.first = k0 == 0;
      b.last = k0 + b.k == k;
      b.bias = g.bias;
      b.clamp = clamp != nullptr;
      if (clamp != nullptr) {
        b.low = clamp->low;
        b.high = clamp->high;
      }
      b.edge_columns = n0 == 0;
      nan |= isa.gemm(b);
    }
    if (columns > cut.columns) break;
  }
  return nan;
}

bool run_depthwise(const Conv2dShape& s, const IsaTable& isa, const float* x, const float* w,
                   const float* bias, const Clamp* clamp, float* y) {
  detail::Depthwise3x3 p;
  p.in_h = s.in_h;
  p.in_w = s.in_w;
  p.out_h = s.out_h();
  p.out_w = s.out_w();
  p.stride = s.stride_h;
  p.clamp = clamp != nullptr;
  if (clamp != nullptr) {
    p.low = clamp->low;
    p.high = clamp->high;
  }
  bool nan = false;
  for (int64_t c = 0; c < s.in_channels; ++c) {
    p.x = x + c * s.in_h * s.in_w;
    p.w = w + c * 9;
    p.bias = bias != nullptr ? bias[c] : 0.0f;
    p.y = y + c * p.out_h * p.out_w;
    nan |= isa.depthwise3x3(p);
  }
  return nan;
}

// The whole convolution; clamp may be null. True when a NaN may have been lost in a clamp.
bool run(const Conv2dShape& s, const IsaTable& isa, const float* x, const float* w,
         const float* bias, const Clamp* clamp, float* y, float* panel) {
  const Conv2dPath path = conv2d_path(s);
  const int64_t in_image = s.in_channels * s.in_h * s.in_w;
  const int64_t out_image = s.out_channels * s.out_h() * s.out_w();
  bool nan = false;
  for (int64_t b = 0; b < s.batch; ++b) {
    const float* xb = x + b * in_image;
    float* yb = y + b * out_image;
    if (path == Conv2dPath::kDepthwise3x3) {
      nan |= run_depthwise(s, isa, xb, w, bias, clamp, yb);
      continue;
    }
    const int64_t m = s.out_channels / s.groups;
    const int64_t k = s.in_channels / s.groups * s.kernel_h * s.kernel_w;
    for (int64_t g = 0; g < s.groups; ++g) {
      const GroupArgs args = {xb + g * (in_image / s.groups), w + g * m * k,
                              bias != nullptr ? bias + g * m : nullptr,
                              yb + g * (out_image / s.groups)};
      nan |= run_gemm(s, isa, args, clamp, path == Conv2dPath::kPointwise, panel);
    }
  }
  return nan;
}

bool any_nan(const float* v, int64_t count) {
  return v != nullptr && std::any_of(v, v + count, [](float f) { return f != f; });
}

}  // namespace

int64_t Conv2dShape::out_h() const {
  return out_size(in_h, kernel_h, stride_h, pad_h, dilation_h);
}

int64_t Conv2dShape::out_w() const {
  return out_size(in_w, kernel_w, stride_w, pad_w, dilation_w);
}

bool conv2d_valid(const Conv2dShape& s) {
  return s.batch >= 0 && s.in_channels >= 0 && s.out_channels >= 0 && s.in_h >= 0 && s.in_w >= 0 &&
         s.kernel_h > 0 && s.kernel_w > 0 && s.stride_h > 0 && s.stride_w > 0 && s.pad_h >= 0 &&
         s.pad_w >= 0 && s.dilation_h > 0 && s.dilation_w > 0 && s.groups > 0 &&
         s.in_channels % s.groups == 0 && s.out_channels % s.groups == 0;
}

Conv2dPath conv2d_path(const Conv2dShape& s) {
  if (s.batch * s.out_channels * s.out_h() * s.out_w() == 0) return Conv2dPath::kEmpty;
  const bool no_pad = s.pad_h == 0 && s.pad_w == 0;
  if (s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && no_pad) {
    return Conv2dPath::kPointwise;
  }
  const bool depthwise = s.groups == s.in_channels && s.groups == s.out_channels;
  const bool same_stride = s.stride_h == s.stride_w && (s.stride_h == 1 || s.stride_h == 2);
  if (depthwise && same_stride && s.kernel_h == 3 && s.kernel_w == 3 && s.pad_h == 1 &&
      s.pad_w == 1 && s.dilation_h == 1 && s.dilation_w == 1) {
    return Conv2dPath::kDepthwise3x3;
  }
  return Conv2dPath::kIm2col;
}

std::size_t conv2d_scratch_bytes(const Conv2dShape& s) {
  if (conv2d_path(s) != Conv2dPath::kIm2col) return 0;
  const int64_t k = s.in_channels / s.groups * s.kernel_h * s.kernel_w;
  const int64_t n = s.out_h() * s.out_w();
  const Panels cut = detail::im2col_panels(n, k, s.out_w(), detail::active().lanes);
  return static_cast<std::size_t>(cut.rows * (cut.columns + cut.slack)) * sizeof(float);
}

void conv2d(const Conv2dShape& s, const float* x, const float* w, const float* bias, Clamp clamp,
            float* y, void* scratch) {
  if (conv2d_path(s) == Conv2dPath::kEmpty) return;
  const IsaTable& isa = detail::active();
  const int64_t total = s.batch * s.out_channels * s.out_h() * s.out_w();
  if (s.in_channels == 0) {  // no product: the bias alone
    const int64_t image = s.out_h() * s.out_w();
    for (int64_t i = 0; i < total; ++i) {
      y[i] = bias != nullptr ? bias[i / image % s.out_channels] : 0.0f;
    }
    if (clamp.active()) k230::clamp(y, total, clamp.low, clamp.high, y);
    return;
  }
  float* panel = static_cast<float*>(scratch);
  if (!clamp.active()) {
    run(s, isa, x, w, bias, nullptr, y, panel);
    return;
  }
  const unsigned watch = isa.nan_watch_begin();
  bool nan = run(s, isa, x, w, bias, &clamp, y, panel);
  nan |= isa.nan_watch_end(watch);
  nan |= any_nan(bias, s.out_channels) || clamp.low != clamp.low || clamp.high != clamp.high;
  if (nan) {
    run(s, isa, x, w, bias, nullptr, y, panel);
    k230::clamp(y, total, clamp.low, clamp.high, y);
  }
}

}  // namespace k230
