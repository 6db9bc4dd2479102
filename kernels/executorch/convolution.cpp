#include "common.h"
#include "k230/conv2d.h"

namespace k230::et {
namespace {

using executorch::aten::SizesType;

// The parameters of one call, for one or two spatial dimensions (one counts as height 1).
struct Call {
  Conv2dGeneric g;
  int rank = 4;
  int64_t output_padding_h = 0;
  int64_t output_padding_w = 0;
};

// Reads a list that has one value for all spatial dimensions or one for each.
bool read_pair(IntList list, int spatial, int64_t least, int64_t absent, int64_t& h, int64_t& w) {
  if (list.size() != 1 && list.size() != static_cast<size_t>(spatial)) return false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] < least) return false;
  }
  w = list[list.size() - 1];
  h = spatial == 1 ? absent : list[0];
  return true;
}

Strides4 strides_of(const Tensor& t) {
  const auto s = t.strides();
  if (t.dim() == 3) return {s[0], s[1], 0, s[2]};
  return {s[0], s[1], s[2], s[3]};
}

int64_t size(const Tensor& t, int dim) { return t.size(dim); }

// The checks of aten::convolution. Fills call; null, or what is wrong.
const char* read_call(const Tensor& in, const Tensor& weight, const Optional<Tensor>& bias,
                      IntList stride, IntList padding, IntList dilation, bool transposed,
                      IntList output_padding, int64_t groups, const Tensor& out, Call& call) {
  if (!is_float(in) || !is_float(weight) || !is_float(out)) {
    return "input, weight and output must be float32";
  }
  const int rank = static_cast<int>(in.dim());
  if (rank != 3 && rank != 4) return "the input must have rank 3 or 4";
  if (weight.dim() != rank) return "weight and input must have the same rank";
  if (out.dim() != rank) return "output and input must have the same rank";
  const int spatial = rank - 2;
  Conv2dShape& s = call.g.shape;
  if (!read_pair(stride, spatial, 1, 1, s.stride_h, s.stride_w)) return "bad stride";
  if (!read_pair(padding, spatial, 0, 0, s.pad_h, s.pad_w)) return "bad padding";
  if (!read_pair(dilation, spatial, 1, 1, s.dilation_h, s.dilation_w)) return "bad dilation";
  if (transposed && !read_pair(output_padding, spatial, 0, 0, call.output_padding_h,
                               call.output_padding_w)) {
    return "bad output padding";
  }
  if (transposed && ((call.output_padding_h > 0 && call.output_padding_h >= s.stride_h &&
                      call.output_padding_h >= s.dilation_h) ||
                     (call.output_padding_w >= s.stride_w &&
                      call.output_padding_w >= s.dilation_w))) {
    return "output padding must be smaller than stride or dilation";
  }
  if (groups <= 0) return "groups must be positive";
  call.rank = rank;
  call.g.transposed = transposed;
  s.groups = groups;
  s.batch = size(in, 0);
  s.in_channels = size(in, 1);
  s.in_h = rank == 3 ? 1 : size(in, 2);
  s.in_w = size(in, rank - 1);
  s.kernel_h = rank == 3 ? 1 : size(weight, 2);
  s.kernel_w = size(weight, rank - 1);
  s.out_channels = transposed ? size(weight, 1) * groups : size(weight, 0);
  if (s.kernel_h < 1 || s.kernel_w < 1) return "the kernel is empty";
  if (s.in_channels % groups != 0 || s.out_channels % groups != 0) {
    return "channels must be a multiple of groups";
  }
  if (transposed ? size(weight, 0) != s.in_channels
                 : size(weight, 1) * groups != s.in_channels) {
    return "weight and input disagree about the input channels";
  }
  if (bias.has_value()) {
    if (!is_float(*bias)) return "the bias must be float32";
    if (bias->dim() != 1 || size(*bias, 0) != s.out_channels) {
      return "the bias must have one value per output channel";
    }
  }
  if (transposed) {
    call.g.out_h = (s.in_h - 1) * s.stride_h - 2 * s.pad_h + s.dilation_h * (s.kernel_h - 1) + 1 +
                   call.output_padding_h;
    call.g.out_w = (s.in_w - 1) * s.stride_w - 2 * s.pad_w + s.dilation_w * (s.kernel_w - 1) + 1 +
                   call.output_padding_w;
  } else {
    call.g.out_h = s.out_h();
    call.g.out_w = s.out_w();
  }
  if (call.g.out_h < 1 || call.g.out_w < 1) return "the kernel is larger than the padded input";
  return nullptr;
}

void compute(KernelRuntimeContext& ctx, Call& call, const Tensor& in, const Tensor& weight,
             const float* bias, Clamp clamp, Tensor& out) {
  Conv2dGeneric& g = call.g;
  float* y = out.mutable_data_ptr<float>();
  if (!g.transposed && is_contiguous(in) && is_contiguous(weight) && is_contiguous(out)) {
    const std::size_t bytes = conv2d_scratch_bytes(g.shape);
    void* scratch = nullptr;
    if (bytes > 0) {
      const auto memory = ctx.allocate_temp(bytes, 64);
      if (memory.ok()) scratch = *memory;
    }
    if (bytes == 0 || scratch != nullptr) {
      conv2d(g.shape, data_of(in), data_of(weight), bias, clamp, y, scratch);
      return;
    }
    // no memory for a panel: the plain loop needs none
  }
  g.x = strides_of(in);
  g.w = strides_of(weight);
  g.y = strides_of(out);
  conv2d_generic(g, data_of(in), data_of(weight), bias, clamp, y);
}

Tensor& run(KernelRuntimeContext& ctx, const char* name, const Tensor& in, const Tensor& weight,
            const Optional<Tensor>& bias, IntList stride, IntList padding, IntList dilation,
            bool transposed, IntList output_padding, int64_t groups, Clamp clamp, Tensor& out) {
  Call call;
  const char* wrong = read_call(in, weight, bias, stride, padding, dilation, transposed,
                                output_padding, groups, out, call);
  K230_REQUIRE(ctx, wrong == nullptr, out, "%s: %s", name, wrong);
  SizesType sizes[4] = {static_cast<SizesType>(call.g.shape.batch),
                        static_cast<SizesType>(call.g.shape.out_channels),
                        static_cast<SizesType>(call.g.out_h),
                        static_cast<SizesType>(call.g.out_w)};
  if (call.rank == 3) sizes[2] = sizes[3];
  K230_REQUIRE(ctx, resize(out, sizes, call.rank), out, "%s: the output cannot hold the result",
               name);
  if (out.numel() == 0) return out;
  compute(ctx, call, in, weight, bias.has_value() ? data_of(*bias) : nullptr, clamp, out);
  return out;
}

}  // namespace

Tensor& convolution_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                        const Optional<Tensor>& bias, IntList stride, IntList padding,
                        IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                        Tensor& out) {
  return run(ctx, "convolution", in, weight, bias, stride, padding, dilation, transposed,
             output_padding, groups, Clamp{}, out);
}

Tensor& conv2d_clamp_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                         const Optional<Tensor>& bias, IntList stride, IntList padding,
                         IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                         double low, double high, Tensor& out) {
  return run(ctx, "conv2d_clamp", in, weight, bias, stride, padding, dilation, transposed,
             output_padding, groups, Clamp{static_cast<float>(low), static_cast<float>(high)}, out);
}

}  // namespace k230::et
