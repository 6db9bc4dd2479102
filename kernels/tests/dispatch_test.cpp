// Which kernels run where: K230_TEST_EXPECT_ISA and K230_TEST_EXPECT_VLEN say what this core is.
#include <cstring>

#include "k230/cpu.h"
#include "support.h"

namespace k230::test {

int test_dispatch() {
  Checker check;
  const char* isa = std::getenv("K230_TEST_EXPECT_ISA");
  const char* vlen = std::getenv("K230_TEST_EXPECT_VLEN");
  if (isa == nullptr || vlen == nullptr) {
    std::puts("K230_TEST_EXPECT_ISA and K230_TEST_EXPECT_VLEN are not set");
    return 1;
  }
  const bool rvv = std::strcmp(isa, "rvv") == 0;
  const CpuReport cpu = inspect_cpu();
  std::printf("compiled=%d usable=%d vlen=%u reason=\"%s\"\n", cpu.rvv_compiled, cpu.rvv_usable,
              cpu.vlen_bits, cpu.reason);
  check.that(cpu.vlen_bits == static_cast<unsigned>(std::atoi(vlen)), "VLEN of this core");
  check.that(cpu.rvv_usable == rvv, "whether RVV is usable");
  check.that((cpu.reason[0] == '\0') == rvv, "a reason is given exactly when it is not");
  check.that(active_isa() == (rvv ? Isa::kRvv : Isa::kScalar), "kernels in use");
  check.that(select_isa(Isa::kRvv) == rvv, "RVV can be selected only when usable");
  check.that(select_isa(Isa::kScalar) && active_isa() == Isa::kScalar, "scalar can be selected");
  return check.result("dispatch");
}

}  // namespace k230::test
