// Proves what the runtime will call: float32 calls in memory order go to our kernels.
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using executorch::aten::DimOrderType;
using executorch::aten::ScalarType;
using executorch::runtime::OpFunction;
using executorch::runtime::TensorMeta;

DimOrderType in_order[] = {0, 1, 2, 3};
DimOrderType channels_last[] = {0, 2, 3, 1};

TensorMeta meta(int rank, ScalarType type = ScalarType::Float) {
  return {type, {in_order, static_cast<std::size_t>(rank)}};
}

OpFunction found(const char* name, const std::vector<TensorMeta>& metas) {
  const auto op =
      executorch::runtime::get_op_function_from_registry(name, {metas.data(), metas.size()});
  return op.ok() ? *op : nullptr;
}

// The function registered under our key, read from the table itself.
OpFunction registered(const char* name, const char* key) {
  for (const auto& kernel : executorch::runtime::get_registered_kernels()) {
    if (std::strcmp(kernel.name_, name) != 0 || kernel.kernel_key_.is_fallback()) continue;
    if (std::strcmp(kernel.kernel_key_.data(), key) == 0) return kernel.op_;
  }
  return nullptr;
}

int failures = 0;

void check(bool good, const char* what) {
  std::printf("%s: %s\n", good ? "ok" : "FAIL", what);
  if (!good) ++failures;
}

}  // namespace

int main() {
  executorch::runtime::runtime_init();
  const TensorMeta f4 = meta(4);
  const TensorMeta f1 = meta(1);
  const OpFunction conv = found("aten::convolution.out", {f4, f4, f1, f4, f4});
  check(conv != nullptr && conv == registered("aten::convolution.out",
                                              "v1/6;0,1,2,3|6;0,1,2,3|6;0|6;0,1,2,3|6;0,1,2,3"),
        "aten::convolution.out with bias is bound to ours");
  check(conv == found("aten::convolution.out", {f4, f4, f4, f4}),
        "and without bias to the same");
  const OpFunction fallback = found("aten::convolution.out", {});
  check(fallback != nullptr && fallback != conv, "the fallback is still there");
  const TensorMeta half = meta(4, ScalarType::Half);
  check(found("aten::convolution.out", {half, half, half, half}) == fallback,
        "float16 goes to the fallback");
  const TensorMeta last = {ScalarType::Float, {channels_last, 4}};
  check(found("aten::convolution.out", {last, f4, last, last}) == fallback,
        "channels last goes to the fallback");
  for (const char* name : {"aten::hardtanh.out", "aten::clamp.out"}) {
    check(found(name, {f4, f4, f4}) == registered(name, "v1/6;0,1,2,3|6;0,1,2,3|6;0,1,2,3"), name);
    check(found(name, {f4, f4, f4}) != found(name, {}), "not its fallback");
  }
  check(found("aten::add.out", {f4, f4, f4, f4}) != found("aten::add.out", {}), "aten::add.out");
  check(found("aten::mean.out", {f4, f4, f4}) != found("aten::mean.out", {}), "aten::mean.out");
  const TensorMeta f2 = meta(2);
  check(found("aten::addmm.out", {f1, f2, f2, f2, f2}) != found("aten::addmm.out", {}),
        "aten::addmm.out");
  check(found("aten::permute_copy.out", {f2, f2, f2}) != found("aten::permute_copy.out", {}),
        "aten::permute_copy.out");
  check(found("k230::conv2d_clamp.out", {}) != nullptr, "k230::conv2d_clamp.out");
  return failures == 0 ? 0 : 1;
}
