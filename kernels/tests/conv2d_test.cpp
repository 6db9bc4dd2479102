// conv2d against float64 over a grid of shapes and random ones, between guard pages.
#include "k230/conv2d.h"

#include <cstdlib>

#include "conv2d_reference.h"
#include "support.h"

namespace k230::test {
namespace {

Conv2dShape shape(int64_t n, int64_t c, int64_t h, int64_t w, int64_t oc, int64_t k, int64_t stride,
                  int64_t pad, int64_t dilation = 1, int64_t groups = 1) {
  Conv2dShape s;
  s.batch = n;
  s.in_channels = c;
  s.in_h = h;
  s.in_w = w;
  s.out_channels = oc;
  s.kernel_h = s.kernel_w = k;
  s.stride_h = s.stride_w = stride;
  s.pad_h = s.pad_w = pad;
  s.dilation_h = s.dilation_w = dilation;
  s.groups = groups;
  return s;
}

void check_case(Checker& check, Random& random, const Conv2dShape& s, bool with_bias, Clamp clamp,
                Guard guard) {
  const int64_t in = s.batch * s.in_channels * s.in_h * s.in_w;
  const int64_t weights = s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w;
  const int64_t out = s.batch * s.out_channels * s.out_h() * s.out_w();
  Buffer x(in, guard), w(weights, guard), bias(s.out_channels, guard), y(out, guard);
  random.fill(x);
  random.fill(w);
  random.fill(bias);
  Buffer scratch(static_cast<int64_t>(conv2d_scratch_bytes(s) / sizeof(float)), guard);
  const float* b = with_bias ? bias.data() : nullptr;
  conv2d(s, x.data(), w.data(), b, clamp, y.data(), scratch.data());
  const std::vector<Expected> want = reference(s, x, w, b);
  const std::string name = describe(s) + (with_bias ? " bias" : "") +
                           (clamp.active() ? " clamp" : "");
  for (int64_t i = 0; i < out; ++i) {
    Expected e = want[static_cast<std::size_t>(i)];
    e.value = clamped(e.value, clamp.low, clamp.high);
    check.number(y[i], e, name);
  }
}

Clamp some_clamp(Random& random) {
  switch (random.between(0, 3)) {
    case 0: return Clamp{};
    case 1: return Clamp{0.0f, 6.0f};
    case 2: return Clamp{-0.25f, 0.5f};
    default: return Clamp{0.0f, std::numeric_limits<float>::infinity()};
  }
}

Conv2dShape random_shape(Random& r) {
  Conv2dShape s;
  s.batch = r.between(1, 2);
  const int64_t kind = r.between(0, 3);
  if (kind == 0) {  // pointwise
    s.in_channels = r.between(1, 70);
    s.out_channels = r.between(1, 30);
    s.in_h = r.between(1, 15);
    s.in_w = r.between(1, 20);
    return s;
  }
  s.in_h = r.between(1, 14);
  s.in_w = r.between(1, 40);
  if (kind == 1) {  // depthwise 3x3
    s.groups = s.in_channels = s.out_channels = r.between(1, 4);
    s.kernel_h = s.kernel_w = 3;
    s.stride_h = s.stride_w = r.between(1, 2);
    s.pad_h = s.pad_w = 1;
    return s;
  }
  s.groups = r.between(1, 3);
  s.in_channels = s.groups * r.between(1, 5);
  s.out_channels = s.groups * r.between(1, 7);
  s.kernel_h = r.between(1, 5);
  s.kernel_w = r.between(1, 5);
  s.stride_h = r.between(1, 3);
  s.stride_w = r.between(1, 3);
  s.pad_h = r.between(0, 3);
  s.pad_w = r.between(0, 3);
  s.dilation_h = r.between(1, 2);
  s.dilation_w = r.between(1, 2);
  return s;
}

}  // namespace

int test_conv2d(bool extended) {
  Checker check;
  Random random(1);
  std::vector<Conv2dShape> grid;
  // pointwise: every row remainder, column counts around the register groups, k around the blocks
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13}) grid.push_back(shape(1, 9, 5, 7, m, 1, 1, 0));
  for (int64_t n : {1, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 49, 64, 65, 127, 196, 257}) {
    grid.push_back(shape(1, 21, 1, n, 7, 1, 1, 0));
  }
  for (int64_t k : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 100, 104, 105, 500, 2000}) {
    grid.push_back(shape(1, k, 7, 7, 6, 1, 1, 0));
    grid.push_back(shape(1, k, 1, 90, 4, 1, 1, 0));
  }
  grid.push_back(shape(3, 16, 9, 9, 10, 1, 1, 0));
  grid.push_back(shape(2, 12, 6, 6, 8, 1, 1, 0, 1, 4));
  // depthwise 3x3: widths around the register groups, heights around the unrolled rows
  for (int64_t stride : {1, 2}) {
    for (int64_t w : {1, 2, 3, 4, 5, 7, 8, 9, 14, 15, 16, 17, 28, 31, 33, 56, 57, 112, 130}) {
      grid.push_back(shape(1, 2, 6, w, 2, 3, stride, 1, 1, 2));
    }
    for (int64_t h = 1; h <= 9; ++h) grid.push_back(shape(1, 3, h, 7, 3, 3, stride, 1, 1, 3));
    grid.push_back(shape(2, 5, 14, 14, 5, 3, stride, 1, 1, 5));
  }
  // general: first layer, kernels, strides, paddings, dilation, groups, depth multiplier
  grid.push_back(shape(1, 3, 33, 33, 32, 3, 2, 1));
  for (int64_t k : {1, 2, 3, 5, 7}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t pad : {0, 1, 3}) {
        if (11 + 2 * pad >= k) grid.push_back(shape(1, 4, 11, 13, 6, k, stride, pad));
      }
    }
  }
  grid.push_back(shape(1, 4, 12, 12, 6, 3, 1, 2, 2));
  grid.push_back(shape(1, 6, 12, 12, 9, 3, 2, 1, 3, 3));
  grid.push_back(shape(1, 4, 9, 9, 8, 5, 1, 2, 1, 4));
  grid.push_back(shape(1, 1, 1, 1, 1, 3, 1, 1));
  grid.push_back(shape(2, 3, 1, 150, 5, 3, 1, 1));
  // empty: no image, no output channel, kernel larger than the padded input
  grid.push_back(shape(0, 3, 8, 8, 4, 3, 1, 1));
  grid.push_back(shape(1, 3, 8, 8, 0, 1, 1, 0));
  grid.push_back(shape(1, 3, 2, 2, 4, 5, 1, 0));
  for (const Conv2dShape& s : grid) {
    check.that(conv2d_valid(s), describe(s) + " is valid");
    check_case(check, random, s, true, Clamp{0.0f, 6.0f}, Guard::kEnd);
    check_case(check, random, s, false, Clamp{}, Guard::kStart);
  }
  const int rounds = extended ? 2500 : 150;
  for (int i = 0; i < rounds; ++i) {
    const Conv2dShape s = random_shape(random);
    const bool bias = random.between(0, 1) == 1;
    check_case(check, random, s, bias, some_clamp(random),
               random.between(0, 1) == 1 ? Guard::kEnd : Guard::kStart);
  }
  if (extended) {  // MobileNetV2's own extremes
    check_case(check, random, shape(1, 3, 224, 224, 32, 3, 2, 1), true, Clamp{0, 6}, Guard::kEnd);
    check_case(check, random, shape(1, 960, 7, 7, 320, 1, 1, 0), true, Clamp{}, Guard::kEnd);
    check_case(check, random, shape(1, 16, 112, 112, 96, 1, 1, 0), true, Clamp{0, 6}, Guard::kEnd);
    check_case(check, random, shape(1, 96, 112, 112, 96, 3, 2, 1, 1, 96), true, Clamp{0, 6},
               Guard::kEnd);
  }
  return check.result("conv2d");
}

}  // namespace k230::test
