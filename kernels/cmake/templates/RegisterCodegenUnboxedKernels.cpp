// ${generated_comment}
// Which function serves which operator. The build reads this file back to prove the bindings.
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/profiler.h>

#include "${fn_header}"

// The generated functions name the runtime's types without a namespace.
namespace torch {
namespace executor {
namespace {

using ::executorch::runtime::Span;

const Kernel kKernels[] = {
${unboxed_kernels}
};

[[maybe_unused]] const auto kRegistered = ::executorch::runtime::register_kernels(
    Span<const Kernel>(kKernels, sizeof kKernels / sizeof kKernels[0]));

}  // namespace
}  // namespace executor
}  // namespace torch
