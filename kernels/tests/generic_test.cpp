// conv2d_generic: any strides, and the transposed convolution, against float64.
#include "conv2d_reference.h"

namespace k230::test {
namespace {

// The definition of a transposed convolution: every input value adds its weighted kernel.
std::vector<Expected> transposed_reference(const Conv2dGeneric& g, const Buffer& x,
                                           const Buffer& w, const Buffer& bias) {
  const Conv2dShape& s = g.shape;
  std::vector<Expected> out(
      static_cast<std::size_t>(s.batch * s.out_channels * g.out_h * g.out_w));
  const int64_t in_group = s.in_channels / s.groups;
  const int64_t out_group = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t ic = 0; ic < s.in_channels; ++ic) {
      for (int64_t iy = 0; iy < s.in_h; ++iy) {
        for (int64_t ix = 0; ix < s.in_w; ++ix) {
          const double v = x[((n * s.in_channels + ic) * s.in_h + iy) * s.in_w + ix];
          for (int64_t o = 0; o < out_group; ++o) {
            const int64_t oc = ic / in_group * out_group + o;
            for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
              for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
                const int64_t oy = iy * s.stride_h - s.pad_h + ky * s.dilation_h;
                const int64_t ox = ix * s.stride_w - s.pad_w + kx * s.dilation_w;
                if (oy < 0 || oy >= g.out_h || ox < 0 || ox >= g.out_w) continue;
                out[static_cast<std::size_t>(
                        ((n * s.out_channels + oc) * g.out_h + oy) * g.out_w + ox)]
                    .add(v * w[((ic * out_group + o) * s.kernel_h + ky) * s.kernel_w + kx]);
              }
            }
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto plane = static_cast<int64_t>(i) / (g.out_h * g.out_w);
    out[i].add(bias[plane % s.out_channels]);
  }
  return out;
}

Strides4 contiguous(int64_t c, int64_t h, int64_t w) { return {c * h * w, h * w, w, 1}; }

void check_channels_last(Checker& check, Random& random) {
  for (int round = 0; round < 60; ++round) {
    Conv2dGeneric g;
    Conv2dShape& s = g.shape;
    s.batch = random.between(1, 2);
    s.groups = random.between(1, 2);
    s.in_channels = s.groups * random.between(1, 4);
    s.out_channels = s.groups * random.between(1, 4);
    s.in_h = random.between(3, 9);
    s.in_w = random.between(3, 9);
    s.kernel_h = random.between(1, 3);
    s.kernel_w = random.between(1, 3);
    s.stride_h = random.between(1, 3);
    s.stride_w = random.between(1, 2);
    s.pad_h = random.between(0, 2);
    s.pad_w = random.between(0, 2);
    g.out_h = s.out_h();
    g.out_w = s.out_w();
    const int64_t in_group = s.in_channels / s.groups;
    Buffer x(s.batch * s.in_channels * s.in_h * s.in_w, Guard::kEnd);
    Buffer w(s.out_channels * in_group * s.kernel_h * s.kernel_w, Guard::kEnd);
    Buffer bias(s.out_channels, Guard::kEnd);
    Buffer y(s.batch * s.out_channels * g.out_h * g.out_w, Guard::kEnd);
    random.fill(x);
    random.fill(w);
    random.fill(bias);
    // x and y channels last: [n][h][w][c]
    Buffer moved(x.size(), Guard::kEnd);
    g.x = {s.in_channels * s.in_h * s.in_w, 1, s.in_w * s.in_channels, s.in_channels};
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        for (int64_t h = 0; h < s.in_h; ++h) {
          for (int64_t i = 0; i < s.in_w; ++i) {
            moved[n * g.x.n + c * g.x.c + h * g.x.h + i * g.x.w] =
                x[((n * s.in_channels + c) * s.in_h + h) * s.in_w + i];
          }
        }
      }
    }
    g.w = contiguous(in_group, s.kernel_h, s.kernel_w);
    g.y = {s.out_channels * g.out_h * g.out_w, 1, g.out_w * s.out_channels, s.out_channels};
    const Clamp clamp = round % 2 == 0 ? Clamp{} : Clamp{-0.5f, 0.5f};
    conv2d_generic(g, moved.data(), w.data(), bias.data(), clamp, y.data());
    const std::vector<Expected> want = reference(s, x, w, bias.data());
    std::size_t at = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t c = 0; c < s.out_channels; ++c) {
        for (int64_t h = 0; h < g.out_h; ++h) {
          for (int64_t i = 0; i < g.out_w; ++i) {
            Expected e = want[at++];
            e.value = clamped(e.value, clamp.low, clamp.high);
            check.number(y[n * g.y.n + c * g.y.c + h * g.y.h + i * g.y.w], e,
                         "channels last " + describe(s));
          }
        }
      }
    }
  }
}

void check_transposed(Checker& check, Random& random) {
  for (int round = 0; round < 80; ++round) {
    Conv2dGeneric g;
    Conv2dShape& s = g.shape;
    g.transposed = true;
    s.batch = random.between(1, 2);
    s.groups = random.between(1, 3);
    s.in_channels = s.groups * random.between(1, 3);
    s.out_channels = s.groups * random.between(1, 3);
    s.in_h = random.between(1, 6);
    s.in_w = random.between(1, 6);
    s.kernel_h = random.between(1, 4);
    s.kernel_w = random.between(1, 4);
    s.stride_h = random.between(1, 3);
    s.stride_w = random.between(1, 3);
    s.pad_h = random.between(0, 1);
    s.pad_w = random.between(0, 1);
    s.dilation_h = random.between(1, 2);
    s.dilation_w = random.between(1, 2);
    const int64_t extra = random.between(0, s.stride_h - 1);
    g.out_h = (s.in_h - 1) * s.stride_h - 2 * s.pad_h + s.dilation_h * (s.kernel_h - 1) + 1 + extra;
    g.out_w = (s.in_w - 1) * s.stride_w - 2 * s.pad_w + s.dilation_w * (s.kernel_w - 1) + 1;
    if (g.out_h < 1 || g.out_w < 1) continue;
    const int64_t out_group = s.out_channels / s.groups;
    Buffer x(s.batch * s.in_channels * s.in_h * s.in_w, Guard::kEnd);
    Buffer w(s.in_channels * out_group * s.kernel_h * s.kernel_w, Guard::kEnd);
    Buffer bias(s.out_channels, Guard::kEnd);
    Buffer y(s.batch * s.out_channels * g.out_h * g.out_w, Guard::kEnd);
    random.fill(x);
    random.fill(w);
    random.fill(bias);
    g.x = contiguous(s.in_channels, s.in_h, s.in_w);
    g.w = contiguous(out_group, s.kernel_h, s.kernel_w);
    g.y = contiguous(s.out_channels, g.out_h, g.out_w);
    conv2d_generic(g, x.data(), w.data(), bias.data(), Clamp{}, y.data());
    const std::vector<Expected> want = transposed_reference(g, x, w, bias);
    for (int64_t i = 0; i < y.size(); ++i) {
      check.number(y[i], want[static_cast<std::size_t>(i)], "transposed " + describe(s));
    }
  }
}

}  // namespace

int test_generic() {
  Checker check;
  Random random(3);
  check_channels_last(check, random);
  check_transposed(check, random);
  return check.result("generic");
}

}  // namespace k230::test
