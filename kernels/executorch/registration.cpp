// Puts the adapters in front of whatever serves these operators otherwise.
//
// A kernel key names types and memory orders of all tensors of a call, a single output twice.
// A kernel registered under a key is preferred for such calls and does not clash with the fallback
// that every operator may have once; calls of other types or orders keep going to that.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include "adapters.h"

namespace k230::et {
namespace {

using executorch::extension::make_boxed_kernel;
using executorch::runtime::Error;
using executorch::runtime::Kernel;
using executorch::runtime::KernelKey;

// names of the events in a profile
constexpr const char kConvolution[] = "k230::convolution.out";
constexpr const char kConvClamp[] = "k230::conv2d_clamp.out";
constexpr const char kHardtanh[] = "k230::hardtanh.out";
constexpr const char kClamp[] = "k230::clamp.out";
constexpr const char kAdd[] = "k230::add.out";
constexpr const char kMean[] = "k230::mean.out";
constexpr const char kPermute[] = "k230::permute_copy.out";
constexpr const char kAddmm[] = "k230::addmm.out";
constexpr const char kLinear[] = "k230::linear.out";

// float32 in memory order, by rank
#define K230_F1 "6;0"
#define K230_F2 "6;0,1"
#define K230_F3 "6;0,1,2"
#define K230_F4 "6;0,1,2,3"
#define K230_KEY3(a, b, c) KernelKey("v1/" a "|" b "|" c)
#define K230_KEY4(a, b, c, d) KernelKey("v1/" a "|" b "|" c "|" d)
#define K230_KEY5(a, b, c, d, e) KernelKey("v1/" a "|" b "|" c "|" d "|" e)

Error register_all() {
  const auto convolution =
      make_boxed_kernel("aten::convolution.out", EXECUTORCH_FN(convolution_out, kConvolution)).op_;
  const auto hardtanh =
      make_boxed_kernel("aten::hardtanh.out", EXECUTORCH_FN(hardtanh_out, kHardtanh)).op_;
  const auto clamp = make_boxed_kernel("aten::clamp.out", EXECUTORCH_FN(clamp_out, kClamp)).op_;
  const auto add = make_boxed_kernel("aten::add.out", EXECUTORCH_FN(add_out, kAdd)).op_;
  const auto mean = make_boxed_kernel("aten::mean.out", EXECUTORCH_FN(mean_out, kMean)).op_;
  const auto permute =
      make_boxed_kernel("aten::permute_copy.out", EXECUTORCH_FN(permute_copy_out, kPermute)).op_;
  const auto addmm = make_boxed_kernel("aten::addmm.out", EXECUTORCH_FN(addmm_out, kAddmm)).op_;
  const auto linear =
      make_boxed_kernel("aten::linear.out", EXECUTORCH_FN(linear_out, kLinear)).op_;
  const Kernel kernels[] = {
      // input, weight, bias where there is one, output
      Kernel("aten::convolution.out", K230_KEY4(K230_F4, K230_F4, K230_F4, K230_F4), convolution),
      Kernel("aten::convolution.out", K230_KEY5(K230_F4, K230_F4, K230_F1, K230_F4, K230_F4),
             convolution),
      Kernel("aten::convolution.out", K230_KEY4(K230_F3, K230_F3, K230_F3, K230_F3), convolution),
      Kernel("aten::convolution.out", K230_KEY5(K230_F3, K230_F3, K230_F1, K230_F3, K230_F3),
             convolution),
      // ours alone: serves every call
      make_boxed_kernel("k230::conv2d_clamp.out", EXECUTORCH_FN(conv2d_clamp_out, kConvClamp)),
      // input, output
      Kernel("aten::hardtanh.out", K230_KEY3(K230_F1, K230_F1, K230_F1), hardtanh),
      Kernel("aten::hardtanh.out", K230_KEY3(K230_F2, K230_F2, K230_F2), hardtanh),
      Kernel("aten::hardtanh.out", K230_KEY3(K230_F3, K230_F3, K230_F3), hardtanh),
      Kernel("aten::hardtanh.out", K230_KEY3(K230_F4, K230_F4, K230_F4), hardtanh),
      Kernel("aten::clamp.out", K230_KEY3(K230_F1, K230_F1, K230_F1), clamp),
      Kernel("aten::clamp.out", K230_KEY3(K230_F2, K230_F2, K230_F2), clamp),
      Kernel("aten::clamp.out", K230_KEY3(K230_F3, K230_F3, K230_F3), clamp),
      Kernel("aten::clamp.out", K230_KEY3(K230_F4, K230_F4, K230_F4), clamp),
      // both operands, output
      Kernel("aten::add.out", K230_KEY4(K230_F1, K230_F1, K230_F1, K230_F1), add),
      Kernel("aten::add.out", K230_KEY4(K230_F2, K230_F2, K230_F2, K230_F2), add),
      Kernel("aten::add.out", K230_KEY4(K230_F3, K230_F3, K230_F3, K230_F3), add),
      Kernel("aten::add.out", K230_KEY4(K230_F4, K230_F4, K230_F4, K230_F4), add),
      // input, output of the same rank or with the reduced dimensions gone
      Kernel("aten::mean.out", K230_KEY3(K230_F4, K230_F4, K230_F4), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F4, K230_F3, K230_F3), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F4, K230_F2, K230_F2), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F3, K230_F3, K230_F3), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F3, K230_F2, K230_F2), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F2, K230_F2, K230_F2), mean),
      Kernel("aten::mean.out", K230_KEY3(K230_F2, K230_F1, K230_F1), mean),
      // input, weight, bias, mean, variance, the three outputs
      Kernel("aten::_native_batch_norm_legit_no_training.out",
             KernelKey("v1/" K230_F4 "|" K230_F1 "|" K230_F1 "|" K230_F1 "|" K230_F1 "|" K230_F4
                       "|" K230_F1 "|" K230_F1),
             batch_norm_boxed),
      // input, output
      Kernel("aten::permute_copy.out", K230_KEY3(K230_F2, K230_F2, K230_F2), permute),
      Kernel("aten::permute_copy.out", K230_KEY3(K230_F3, K230_F3, K230_F3), permute),
      Kernel("aten::permute_copy.out", K230_KEY3(K230_F4, K230_F4, K230_F4), permute),
      // addend, matrices, output
      Kernel("aten::addmm.out", K230_KEY5(K230_F1, K230_F2, K230_F2, K230_F2, K230_F2), addmm),
      Kernel("aten::addmm.out", K230_KEY5(K230_F2, K230_F2, K230_F2, K230_F2, K230_F2), addmm),
      // input, weight, bias where there is one, output
      Kernel("aten::linear.out", K230_KEY4(K230_F2, K230_F2, K230_F2, K230_F2), linear),
      Kernel("aten::linear.out", K230_KEY5(K230_F2, K230_F2, K230_F1, K230_F2, K230_F2), linear),
      Kernel("aten::linear.out", K230_KEY4(K230_F3, K230_F2, K230_F3, K230_F3), linear),
      Kernel("aten::linear.out", K230_KEY5(K230_F3, K230_F2, K230_F1, K230_F3, K230_F3), linear),
  };
  return executorch::runtime::register_kernels({kernels, sizeof(kernels) / sizeof(kernels[0])});
}

const Error registered = register_all();

}  // namespace
}  // namespace k230::et
