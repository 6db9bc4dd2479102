#include <executorch/runtime/core/event_tracer_hooks.h>

#include <cmath>

#include "common.h"
#include "k230/elementwise.h"

namespace k230::et {
namespace {

using executorch::aten::SizesType;

// A value per channel, or `absent` for a tensor that is not given.
float at(const Optional<Tensor>& t, int64_t channel, float absent) {
  return t.has_value() ? data_of(*t)[channel] : absent;
}

bool per_channel(const Tensor& t, int64_t channels) {
  return is_float(t) && t.dim() == 1 && t.size(0) == channels;
}

}  // namespace

void batch_norm_out(KernelRuntimeContext& ctx, const Tensor& in, const Optional<Tensor>& weight,
                    const Optional<Tensor>& bias, const Tensor& mean, const Tensor& variance,
                    double eps, Tensor& out, Tensor& mean_out, Tensor& invstd_out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(out) && in.dim() >= 2 && in.dim() <= kMaxRank, ,
               "batch_norm: float32 of rank 2 or more expected");
  K230_REQUIRE(ctx, is_contiguous(in) && is_contiguous(out), ,
               "batch_norm: tensors must be in memory order");
  const int64_t channels = in.size(1);
  K230_REQUIRE(ctx,
               per_channel(mean, channels) && per_channel(variance, channels) &&
                   (!weight.has_value() || per_channel(*weight, channels)) &&
                   (!bias.has_value() || per_channel(*bias, channels)), ,
               "batch_norm: statistics, weight and bias need %d float32 values each",
               static_cast<int>(channels));
  const SizesType none[1] = {0};
  K230_REQUIRE(ctx,
               resize(out, in.sizes().data(), static_cast<int>(in.dim())) &&
                   resize(mean_out, none, 1) && resize(invstd_out, none, 1), ,
               "batch_norm: an output cannot hold the result");
  if (in.numel() == 0) return;
  const int64_t image = in.numel() / (in.size(0) * channels);
  const float* x = data_of(in);
  float* y = out.mutable_data_ptr<float>();
  for (int64_t plane = 0; plane < in.size(0) * channels; ++plane) {
    const int64_t c = plane % channels;
    const float invstd = 1.0f / std::sqrt(data_of(variance)[c] + static_cast<float>(eps));
    const float scale = invstd * at(weight, c, 1.0f);
    const float shift = at(bias, c, 0.0f) - data_of(mean)[c] * scale;
    scale_shift(x + plane * image, image, scale, shift, y + plane * image);
  }
}

// By hand: the generated wrappers know one output only.
void batch_norm_boxed(KernelRuntimeContext& ctx,
                      executorch::runtime::Span<executorch::runtime::EValue*> stack) {
  executorch::runtime::internal::EventTracerProfileOpScope scope(
      ctx.internal_event_tracer(), "k230::_native_batch_norm_legit_no_training.out");
  if (stack.size() < 10) {
    ET_LOG(Error, "k230: batch_norm: %zu arguments instead of 10", stack.size());
    ctx.fail(executorch::runtime::Error::InvalidArgument);
    return;
  }
  Tensor out = stack[7]->toTensor();
  Tensor mean_out = stack[8]->toTensor();
  Tensor invstd_out = stack[9]->toTensor();
  batch_norm_out(ctx, stack[0]->toTensor(), stack[1]->toOptional<Tensor>(),
                 stack[2]->toOptional<Tensor>(), stack[3]->toTensor(), stack[4]->toTensor(),
                 stack[6]->toDouble(), out, mean_out, invstd_out);
}

}  // namespace k230::et
