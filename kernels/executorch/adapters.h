// ExecuTorch operators computed by the kernels of this library: float32, any memory layout.
//
// Each checks its arguments; an illegal call fails the context with InvalidArgument, with the
// reason in the log, and leaves the output alone. Where the fast kernels do not apply (other
// layouts, transposed convolution, broadcasting) a plain loop computes the result.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <optional>

namespace k230::et {

using executorch::aten::ArrayRef;
using executorch::aten::Scalar;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;
using IntList = executorch::aten::ArrayRef<int64_t>;
template <class T>
using Optional = std::optional<T>;

// aten::convolution.out
Tensor& convolution_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                        const Optional<Tensor>& bias, IntList stride, IntList padding,
                        IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                        Tensor& out);

// k230::conv2d_clamp.out: the same, then clamped to [low, high]
Tensor& conv2d_clamp_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                         const Optional<Tensor>& bias, IntList stride, IntList padding,
                         IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                         double low, double high, Tensor& out);

// aten::hardtanh.out, aten::clamp.out
Tensor& hardtanh_out(KernelRuntimeContext& ctx, const Tensor& in, const Scalar& low,
                     const Scalar& high, Tensor& out);
Tensor& clamp_out(KernelRuntimeContext& ctx, const Tensor& in, const Optional<Scalar>& low,
                  const Optional<Scalar>& high, Tensor& out);

// aten::add.out
Tensor& add_out(KernelRuntimeContext& ctx, const Tensor& a, const Tensor& b, const Scalar& alpha,
                Tensor& out);

// aten::mean.out
Tensor& mean_out(KernelRuntimeContext& ctx, const Tensor& in, Optional<IntList> dims,
                 bool keepdim, Optional<ScalarType> dtype, Tensor& out);

// aten::permute_copy.out
Tensor& permute_copy_out(KernelRuntimeContext& ctx, const Tensor& in, IntList dims, Tensor& out);

// aten::addmm.out, aten::linear.out
Tensor& addmm_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& mat1,
                  const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out);
Tensor& linear_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                   const Optional<Tensor>& bias, Tensor& out);

// aten::_native_batch_norm_legit_no_training.out; the statistics' outputs become empty
void batch_norm_out(KernelRuntimeContext& ctx, const Tensor& in, const Optional<Tensor>& weight,
                    const Optional<Tensor>& bias, const Tensor& mean, const Tensor& variance,
                    double eps, Tensor& out, Tensor& mean_out, Tensor& invstd_out);
void batch_norm_boxed(KernelRuntimeContext& ctx,
                      executorch::runtime::Span<executorch::runtime::EValue*> stack);

}  // namespace k230::et
