// k230_core_test SUITE [--extended] [--isa scalar|rvv]
#include <cstring>

#include "k230/cpu.h"
#include "support.h"

int main(int argc, char** argv) {
  using namespace k230;
  const std::string suite = argc > 1 ? argv[1] : "";
  bool extended = false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--extended") == 0) {
      extended = true;
    } else if (std::strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
      const Isa isa = std::strcmp(argv[++i], "rvv") == 0 ? Isa::kRvv : Isa::kScalar;
      if (!select_isa(isa)) {
        std::fprintf(stderr, "k230_core_test: %s\n", inspect_cpu().reason);
        return 2;
      }
    }
  }
  if (suite == "conv2d") return test::test_conv2d(extended);
  if (suite == "special_values") return test::test_special_values();
  if (suite == "generic") return test::test_generic();
  if (suite == "dense") return test::test_dense(extended);
  if (suite == "elementwise") return test::test_elementwise();
  if (suite == "dispatch") return test::test_dispatch();
  std::fputs("usage: k230_core_test conv2d|special_values|generic|dense|elementwise|dispatch "
             "[--extended] [--isa scalar|rvv]\n", stderr);
  return 1;
}
