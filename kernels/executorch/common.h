// What the adapters share.
#pragma once

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include "adapters.h"

// Leaves the adapter with InvalidArgument, and the reason in the log, unless condition holds.
#define K230_REQUIRE(ctx, condition, out, ...)                           \
  do {                                                                   \
    if (!(condition)) {                                                  \
      ET_LOG(Error, "k230: " __VA_ARGS__);                               \
      (ctx).fail(::executorch::runtime::Error::InvalidArgument);         \
      return out;                                                        \
    }                                                                    \
  } while (false)

namespace k230::et {

inline constexpr int kMaxRank = 16;  // ExecuTorch's own limit

inline bool is_float(const Tensor& t) { return t.scalar_type() == ScalarType::Float; }

// In memory as its sizes say, last dimension fastest.
inline bool is_contiguous(const Tensor& t) {
  for (decltype(t.dim()) i = 0; i < t.dim(); ++i) {
    if (t.dim_order()[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

inline const float* data_of(const Tensor& t) { return t.const_data_ptr<float>(); }

inline double number(const Scalar& s) {
  if (s.isIntegral(/*includeBool=*/false)) return static_cast<double>(s.to<int64_t>());
  if (s.isBoolean()) return s.to<bool>() ? 1.0 : 0.0;
  return s.to<double>();
}

// Gives out the wanted sizes; false when its memory is too small for them.
inline bool resize(Tensor& out, const executorch::aten::SizesType* sizes, int rank) {
  return executorch::runtime::resize_tensor(
             out, {sizes, static_cast<size_t>(rank)}) == executorch::runtime::Error::Ok;
}

}  // namespace k230::et
