#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include "common.h"
#include "k230/gemm.h"

namespace k230::et {

using executorch::aten::SizesType;

Tensor& addmm_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& mat1,
                  const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(mat1) && is_float(mat2) && is_float(out), out,
               "addmm: tensors must be float32");
  K230_REQUIRE(ctx, mat1.dim() == 2 && mat2.dim() == 2 && out.dim() == 2, out,
               "addmm: matrices must have rank 2");
  K230_REQUIRE(ctx, is_contiguous(mat1) && is_contiguous(mat2) && is_contiguous(out), out,
               "addmm: matrices must be row-major");
  K230_REQUIRE(ctx, mat1.size(1) == mat2.size(0), out,
               "addmm: the inner sizes %d and %d differ", static_cast<int>(mat1.size(1)),
               static_cast<int>(mat2.size(0)));
  Addmm s;
  s.m = mat1.size(0);
  s.n = mat2.size(1);
  s.k = mat1.size(1);
  s.alpha = static_cast<float>(number(alpha));
  s.beta = static_cast<float>(number(beta));
  const int rank = static_cast<int>(in.dim());
  K230_REQUIRE(ctx, rank <= 2, out, "addmm: the addend must have rank 2 or less");
  const int64_t rows = rank == 2 ? in.size(0) : 1;
  const int64_t cols = rank == 0 ? 1 : in.size(rank - 1);
  K230_REQUIRE(ctx, (rows == 1 || rows == s.m) && (cols == 1 || cols == s.n), out,
               "addmm: the addend does not broadcast to the result");
  s.c_row = rows == 1 ? 0 : in.strides()[0];
  s.c_col = cols == 1 ? 0 : in.strides()[static_cast<size_t>(rank - 1)];
  const SizesType sizes[2] = {static_cast<SizesType>(s.m), static_cast<SizesType>(s.n)};
  K230_REQUIRE(ctx, resize(out, sizes, 2), out, "addmm: the output cannot hold the result");
  addmm(s, data_of(mat1), data_of(mat2), data_of(in), out.mutable_data_ptr<float>());
  return out;
}

Tensor& linear_out(KernelRuntimeContext& ctx, const Tensor& in, const Tensor& weight,
                   const Optional<Tensor>& bias, Tensor& out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(weight) && is_float(out), out,
               "linear: tensors must be float32");
  const int rank = static_cast<int>(in.dim());
  K230_REQUIRE(ctx, rank >= 1 && rank <= kMaxRank && weight.dim() == 2, out,
               "linear: input of rank 1 or more and weight of rank 2 expected");
  K230_REQUIRE(ctx, is_contiguous(in) && is_contiguous(weight) && is_contiguous(out), out,
               "linear: tensors must be row-major");
  const int64_t k = weight.size(1);
  const int64_t n = weight.size(0);
  K230_REQUIRE(ctx, in.size(rank - 1) == k, out, "linear: the input has %d features, %d expected",
               static_cast<int>(in.size(rank - 1)), static_cast<int>(k));
  const bool with_bias = bias.has_value();
  K230_REQUIRE(ctx, !with_bias || (is_float(*bias) && bias->dim() == 1 && bias->size(0) == n), out,
               "linear: the bias must be float32 with %d values", static_cast<int>(n));
  SizesType sizes[kMaxRank];
  int64_t m = 1;
  for (int i = 0; i < rank - 1; ++i) {
    sizes[i] = static_cast<SizesType>(in.size(i));
    m *= in.size(i);
  }
  sizes[rank - 1] = static_cast<SizesType>(n);
  K230_REQUIRE(ctx, resize(out, sizes, rank), out, "linear: the output cannot hold the result");
  linear(m, n, k, data_of(in), data_of(weight), with_bias ? data_of(*bias) : nullptr,
         out.mutable_data_ptr<float>());
  return out;
}

}  // namespace k230::et
