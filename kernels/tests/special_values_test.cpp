// NaN, infinities, denormals and signed zeros through convolution, with and without a clamp.
#include <cfenv>

#include "conv2d_reference.h"
#include "k230/elementwise.h"

namespace k230::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  Conv2dShape shape;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  Conv2dShape pointwise;
  pointwise.in_channels = 20;
  pointwise.out_channels = 13;
  pointwise.in_h = 9;
  pointwise.in_w = 11;
  all.push_back({"pointwise", pointwise});
  Conv2dShape blocks = pointwise;  // several blocks of columns and of k
  blocks.in_channels = 330;
  blocks.in_h = 14;
  blocks.in_w = 14;
  all.push_back({"pointwise in blocks", blocks});
  Conv2dShape odd = pointwise;  // one column beyond the full tiles
  odd.in_channels = 130;
  odd.in_h = odd.in_w = 7;
  all.push_back({"pointwise 7x7", odd});
  for (int64_t stride : {1, 2}) {
    Conv2dShape depthwise;
    depthwise.in_channels = depthwise.out_channels = depthwise.groups = 3;
    depthwise.in_h = 12;
    depthwise.in_w = 37;
    depthwise.kernel_h = depthwise.kernel_w = 3;
    depthwise.pad_h = depthwise.pad_w = 1;
    depthwise.stride_h = depthwise.stride_w = stride;
    all.push_back({"depthwise", depthwise});
  }
  Conv2dShape first;
  first.in_channels = 3;
  first.out_channels = 8;
  first.in_h = first.in_w = 15;
  first.kernel_h = first.kernel_w = 3;
  first.stride_h = first.stride_w = 2;
  first.pad_h = first.pad_w = 1;
  all.push_back({"first layer", first});
  return all;
}

// Puts `value` at every place of one of the operands in turn (a sample of them) and compares.
void check_place(Checker& check, const Case& c, float value, int operand, Clamp clamp,
                 Random& random) {
  const Conv2dShape& s = c.shape;
  Buffer x(s.in_channels * s.in_h * s.in_w, Guard::kEnd);
  Buffer w(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w, Guard::kEnd);
  Buffer bias(s.out_channels, Guard::kEnd);
  random.fill(x);
  random.fill(w);
  random.fill(bias);
  Buffer& target = operand == 0 ? x : operand == 1 ? w : bias;
  target[random.between(0, target.size() - 1)] = value;
  if (operand == 0 && random.between(0, 3) == 0) {
    target[random.between(0, target.size() - 1)] = -value;  // infinity minus infinity
  }
  Buffer y(s.out_channels * s.out_h() * s.out_w(), Guard::kEnd);
  Buffer scratch(static_cast<int64_t>(conv2d_scratch_bytes(s) / sizeof(float)), Guard::kEnd);
  conv2d(s, x.data(), w.data(), bias.data(), clamp, y.data(), scratch.data());
  const std::vector<Expected> want = reference(s, x, w, bias.data());
  const std::string name = std::string(c.name) + " with " + std::to_string(value) + " in operand " +
                           std::to_string(operand) + (clamp.active() ? ", clamped" : "");
  for (int64_t i = 0; i < y.size(); ++i) {
    const Expected& e = want[static_cast<std::size_t>(i)];
    const double tolerance = std::isfinite(e.magnitude) ? e.tolerance() : 0.0;
    check.number(y[i], clamped(e.value, clamp.low, clamp.high), tolerance, name);
  }
}

}  // namespace

int test_special_values() {
  Checker check;
  Random random(2);
  for (const Case& c : cases()) {
    for (float value : {kNan, kInf, -kInf, 1e-42f, -0.0f}) {
      for (int operand = 0; operand < 3; ++operand) {
        for (int i = 0; i < 6; ++i) {
          check_place(check, c, value, operand, Clamp{0.0f, 6.0f}, random);
          check_place(check, c, value, operand, Clamp{}, random);
        }
      }
    }
  }
  {  // a NaN that exists in one row only, far from the first row and column
    Conv2dShape s;
    s.in_channels = 4;
    s.out_channels = 13;
    s.in_h = 8;
    s.in_w = 9;
    Buffer x(4 * 72, Guard::kEnd), w(4 * 13, Guard::kEnd), y(13 * 72, Guard::kEnd);
    for (int64_t i = 0; i < x.size(); ++i) x[i] = 1.0f;
    for (int64_t i = 0; i < w.size(); ++i) w[i] = 1.0f;
    x[0 * 72 + 70] = kInf;
    x[1 * 72 + 70] = kInf;
    w[11 * 4 + 1] = -1.0f;  // inf - inf in row 11, inf + inf in the others
    conv2d(s, x.data(), w.data(), nullptr, Clamp{0.0f, 6.0f}, y.data(), nullptr);
    check.that(std::isnan(y[11 * 72 + 70]), "inf - inf stays NaN under a clamp");
    check.that(y[11 * 72 + 69] == 2.0f, "its neighbour is a number");
    check.that(y[10 * 72 + 70] == 6.0f, "inf + inf in the row before is clamped");
  }
  {  // exception flags of the caller survive, and are not cleared
    Conv2dShape s;
    s.in_channels = s.out_channels = 1;
    s.in_h = s.in_w = 4;
    Buffer x(16, Guard::kEnd), w(1, Guard::kEnd), y(16, Guard::kEnd);
    std::feraiseexcept(FE_INVALID);
    conv2d(s, x.data(), w.data(), nullptr, Clamp{0.0f, 6.0f}, y.data(), nullptr);
    check.that(std::fetestexcept(FE_INVALID) != 0, "FE_INVALID raised before the call is kept");
    std::feclearexcept(FE_ALL_EXCEPT);
    conv2d(s, x.data(), w.data(), nullptr, Clamp{0.0f, 6.0f}, y.data(), nullptr);
    check.that(std::fetestexcept(FE_INVALID) == 0, "FE_INVALID is not raised by clean data");
  }
  {  // bounds that are NaN, or the wrong way round, as torch.clamp
    Conv2dShape s;
    s.in_channels = s.out_channels = 1;
    s.in_h = 1;
    s.in_w = 5;
    Buffer x(5, Guard::kEnd), w(1, Guard::kEnd), y(5, Guard::kEnd);
    conv2d(s, x.data(), w.data(), nullptr, Clamp{kNan, 6.0f}, y.data(), nullptr);
    check.that(std::isnan(y[0]) && std::isnan(y[4]), "a NaN bound gives NaN");
    conv2d(s, x.data(), w.data(), nullptr, Clamp{3.0f, 2.0f}, y.data(), nullptr);
    check.that(y[0] == 2.0f && y[4] == 2.0f, "low above high gives high");
  }
  return check.result("special_values");
}

}  // namespace k230::test
