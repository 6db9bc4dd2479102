#include "mobilenet_v2.h"

#include <algorithm>

namespace k230::bench {
namespace {

class Builder {
 public:
  explicit Builder(bool fused) : fused_(fused) {}

  void conv(const std::string& name, int64_t out, int64_t kernel, int64_t stride, bool depthwise,
            bool relu6) {
    Op op;
    op.kind = OpKind::kConv;
    op.name = name;
    op.conv.batch = 1;
    op.conv.in_channels = channels_;
    op.conv.in_h = op.conv.in_w = size_;
    op.conv.out_channels = out;
    op.conv.kernel_h = op.conv.kernel_w = kernel;
    op.conv.stride_h = op.conv.stride_w = stride;
    op.conv.pad_h = op.conv.pad_w = kernel / 2;
    op.conv.groups = depthwise ? channels_ : 1;
    op.relu6 = relu6;
    op.in = current_;
    op.out = other();
    channels_ = out;
    size_ = op.conv.out_h();
    op.count = channels_ * size_ * size_;
    take_weights(op, static_cast<std::size_t>(out * op.conv.in_channels / op.conv.groups * kernel *
                                              kernel),
                 static_cast<std::size_t>(out));
    push(op);
    if (relu6 && !fused_) {
      Op clamp = unary(OpKind::kHardtanh, name + ".relu6");
      push(clamp);
    }
  }

  void inverted_residual(int index, int64_t expand, int64_t out, int64_t stride) {
    const std::string name = "features." + std::to_string(index);
    const int64_t in = channels_;
    const bool residual = stride == 1 && in == out;
    kept_ = residual ? current_ : -1;
    if (expand != 1) conv(name + ".expand", in * expand, 1, 1, false, true);
    conv(name + ".depthwise", channels_, 3, stride, true, true);
    conv(name + ".project", out, 1, 1, false, false);
    if (residual) {
      Op op = unary(OpKind::kAdd, name + ".add");
      op.in2 = kept_;
      kept_ = -1;
      push(op);
    }
  }

  void head() {
    Op mean = unary(OpKind::kMean, "mean");
    mean.k = size_ * size_;
    mean.count = channels_;
    size_ = 1;
    push(mean);
    Op linear = unary(OpKind::kLinear, "classifier");
    linear.k = channels_;
    linear.count = 1000;
    take_weights(linear, static_cast<std::size_t>(linear.k * linear.count), 1000);
    push(linear);
  }

  Network take() { return std::move(net_); }

  void start(int64_t channels, int64_t size) {
    channels_ = channels;
    size_ = size;
    note_size(channels * size * size);
  }

 private:
  Op unary(OpKind kind, const std::string& name) {
    Op op;
    op.kind = kind;
    op.name = name;
    op.count = channels_ * size_ * size_;
    op.in = current_;
    op.out = other();
    return op;
  }

  // A slot that holds nothing still needed.
  int other() const {
    int slot = 0;
    while (slot == current_ || slot == kept_) ++slot;
    return slot;
  }

  void take_weights(Op& op, std::size_t weights, std::size_t biases) {
    op.weight = net_.weights;
    net_.weights += (weights + 15) / 16 * 16;
    op.bias = net_.weights;
    net_.weights += (biases + 15) / 16 * 16;
  }

  void note_size(int64_t floats) { net_.slot_floats = std::max(net_.slot_floats, floats); }

  void push(const Op& op) {
    note_size(op.count);
    net_.slots = std::max({net_.slots, op.in + 1, op.in2 + 1, op.out + 1});
    current_ = op.out;
    net_.ops.push_back(op);
  }

  Network net_;
  bool fused_;
  int64_t channels_ = 0, size_ = 0;
  int current_ = 0;
  int kept_ = -1;
};

}  // namespace

int64_t Op::macs() const {
  if (kind == OpKind::kLinear) return k * count;
  if (kind != OpKind::kConv) return 0;
  return count * (conv.in_channels / conv.groups) * conv.kernel_h * conv.kernel_w;
}

Network mobilenet_v2(bool fused) {
  struct Stage {
    int64_t expand, channels, repeats, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Builder b(fused);
  b.start(3, 224);
  b.conv("features.0", 32, 3, 2, false, true);
  int index = 1;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.repeats; ++i) {
      b.inverted_residual(index++, stage.expand, stage.channels, i == 0 ? stage.stride : 1);
    }
  }
  b.conv("features.18", 1280, 1, 1, false, true);
  b.head();
  return b.take();
}

}  // namespace k230::bench
