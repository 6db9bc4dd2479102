#include "common.h"
#include "k230/elementwise.h"

namespace k230::et {

using executorch::aten::SizesType;

Tensor& permute_copy_out(KernelRuntimeContext& ctx, const Tensor& in, IntList dims, Tensor& out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(out), out, "permute_copy: tensors must be float32");
  const int rank = static_cast<int>(in.dim());
  K230_REQUIRE(ctx, rank <= kMaxRank && dims.size() == static_cast<size_t>(rank), out,
               "permute_copy: %d dimensions must be named", rank);
  SizesType sizes[kMaxRank];
  int64_t from[kMaxRank];  // stride in the input of each dimension of the output
  bool named[kMaxRank] = {};
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)] < 0 ? dims[static_cast<size_t>(i)] + rank
                                                         : dims[static_cast<size_t>(i)];
    K230_REQUIRE(ctx, dim >= 0 && dim < rank && !named[dim], out,
                 "permute_copy: a dimension is out of range or named twice");
    named[dim] = true;
    sizes[i] = static_cast<SizesType>(in.size(dim));
    from[i] = in.strides()[static_cast<size_t>(dim)];
  }
  K230_REQUIRE(ctx, resize(out, sizes, rank), out,
               "permute_copy: the output cannot hold the result");
  const float* x = data_of(in);
  float* y = out.mutable_data_ptr<float>();
  const bool swaps = rank == 2 && from[0] == 1 && from[1] == in.size(1);
  if (swaps && is_contiguous(in) && is_contiguous(out)) {
    transpose(x, in.size(0), in.size(1), y);
    return out;
  }
  const int64_t total = out.numel();
  int64_t index[kMaxRank] = {};
  for (int64_t n = 0; n < total; ++n) {
    int64_t source = 0;
    int64_t target = 0;
    for (int i = 0; i < rank; ++i) {
      source += index[i] * from[i];
      target += index[i] * out.strides()[static_cast<size_t>(i)];
    }
    y[target] = x[source];
    for (int i = rank - 1; i >= 0; --i) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace k230::et
