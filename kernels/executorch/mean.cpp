#include "common.h"
#include "k230/elementwise.h"

namespace k230::et {
namespace {

using executorch::aten::SizesType;

// Which dimensions are reduced; false when a dimension is out of range or named twice.
bool read_dims(const Optional<IntList>& dims, int rank, bool* reduced) {
  if (!dims.has_value() || dims->empty()) {
    for (int i = 0; i < rank; ++i) reduced[i] = true;
    return true;
  }
  for (int64_t d : *dims) {
    const int64_t at = d < 0 ? d + (rank == 0 ? 1 : rank) : d;
    if (at < 0 || at >= (rank == 0 ? 1 : rank) || reduced[at]) return false;
    reduced[at] = true;
  }
  return true;
}

int64_t offset_of(int64_t number, const int64_t* sizes, const int64_t* strides, int count) {
  int64_t offset = 0;
  for (int i = count - 1; i >= 0; --i) {
    offset += number % sizes[i] * strides[i];
    number /= sizes[i];
  }
  return offset;
}

// Any dimensions, any layout.
void mean_generic(const Tensor& in, const bool* reduced, const Tensor& out, bool keepdim,
                  float* y) {
  int64_t kept_sizes[kMaxRank], kept_in[kMaxRank], kept_out[kMaxRank];
  int64_t sizes[kMaxRank], strides[kMaxRank];
  int kept = 0;
  int gone = 0;
  int64_t rows = 1;
  int64_t count = 1;
  for (int i = 0; i < in.dim(); ++i) {
    const auto stride = static_cast<int64_t>(in.strides()[static_cast<size_t>(i)]);
    if (reduced[i]) {
      sizes[gone] = in.size(i);
      strides[gone++] = stride;
      count *= in.size(i);
    } else {
      kept_sizes[kept] = in.size(i);
      kept_in[kept] = stride;
      kept_out[kept] = out.strides()[static_cast<size_t>(keepdim ? i : kept)];
      rows *= in.size(i);
      ++kept;
    }
  }
  const float* x = data_of(in);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + offset_of(r, kept_sizes, kept_in, kept);
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += row[offset_of(i, sizes, strides, gone)];
    y[offset_of(r, kept_sizes, kept_out, kept)] =
        static_cast<float>(sum / static_cast<double>(count));
  }
}

}  // namespace

Tensor& mean_out(KernelRuntimeContext& ctx, const Tensor& in, Optional<IntList> dims,
                 bool keepdim, Optional<ScalarType> dtype, Tensor& out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(out), out, "mean: tensors must be float32");
  K230_REQUIRE(ctx, !dtype.has_value() || *dtype == ScalarType::Float, out,
               "mean: the result type must be float32");
  const int rank = static_cast<int>(in.dim());
  K230_REQUIRE(ctx, rank <= kMaxRank, out, "mean: the rank is too high");
  bool reduced[kMaxRank] = {};
  K230_REQUIRE(ctx, read_dims(dims, rank, reduced), out,
               "mean: a dimension is out of range or named twice");
  SizesType sizes[kMaxRank];
  int out_rank = 0;
  int64_t rows = 1;
  int64_t cols = 1;
  bool trailing = true;  // the reduced dimensions are the last ones
  for (int i = 0; i < rank; ++i) {
    if (reduced[i]) {
      cols *= in.size(i);
      if (keepdim) sizes[out_rank++] = 1;
    } else {
      trailing = trailing && (i == 0 || !reduced[i - 1]);
      rows *= in.size(i);
      sizes[out_rank++] = static_cast<SizesType>(in.size(i));
    }
  }
  K230_REQUIRE(ctx, resize(out, sizes, out_rank), out, "mean: the output cannot hold the result");
  if (out.numel() == 0) return out;
  float* y = out.mutable_data_ptr<float>();
  if (trailing && is_contiguous(in) && is_contiguous(out)) {
    mean_rows(data_of(in), rows, cols, y);
  } else {
    mean_generic(in, reduced, out, keepdim, y);
  }
  return out;
}

}  // namespace k230::et
