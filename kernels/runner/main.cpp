#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <new>
#include <string>

#include "args.h"
#include "batch.h"
#include "failure.h"
#include "frames.h"
#include "manifest.h"
#include "single.h"

namespace {

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSomeSamplesFailed = 3;

void list_operators() {
  for (const auto& kernel : executorch::runtime::get_registered_kernels()) {
    std::printf(
        "%s\t%s\n", kernel.name_,
        kernel.kernel_key_.is_fallback() ? "fallback" : kernel.kernel_key_.data());
  }
}

int run(const k230::Options& options) {
  if (options.help) {
    std::fputs(k230::usage(), stdout);
  } else if (options.manifest) {
    std::printf("%s\n", k230::manifest_json());
  } else if (options.list_operators) {
    list_operators();
  } else if (options.inputs_list.empty()) {
    k230::run_single(options);
  } else {
    return k230::run_batch(options) == 0 ? kGood : kSomeSamplesFailed;
  }
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  k230::Options options;
  const auto fail = [&options](k230::FailCode code, const std::string& reason) {
    k230::emit(k230::fail_frame(options.run_id.empty() ? "-" : options.run_id, code, reason));
    return code == k230::FailCode::kUsage ? kUsage : kFailed;
  };
  try {
    options = k230::parse_args(argc, argv);
    return run(options);
  } catch (const k230::Failure& failure) {
    return fail(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return fail(k230::FailCode::kMemory, "out of memory");
  }
}
