#include "cpu.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "frames.h"

#if defined(K230_REQUIRE_RVV) && defined(__riscv)

#include <sys/auxv.h>

#if defined(__riscv_vector)
#error "this file must be compiled without V: it decides whether V may be used"
#endif

namespace k230 {
namespace {

constexpr unsigned long kHwcapV = 1ul << ('V' - 'A');
constexpr unsigned long kBytesLeast = 16;  // VLEN 128

unsigned long vector_register_bytes() {
  unsigned long bytes = 0;
  asm volatile("csrr %0, 0xc22" : "=r"(bytes));  // vlenb, by number: the assembler knows no V here
  return bytes;
}

}  // namespace

std::string cpu_objection() {
  // RT-Smart tells no capabilities (0); it runs on the core that has V.
  const unsigned long capabilities = getauxval(AT_HWCAP);
  if (capabilities != 0 && (capabilities & kHwcapV) == 0) {
    return "this core has no vector extension: use the variant portable or the big core";
  }
  const unsigned long bytes = vector_register_bytes();
  if (bytes < kBytesLeast) {
    return "vector registers have " + std::to_string(bytes * 8) + " bits, 128 are needed";
  }
  return "";
}

}  // namespace k230

#else

namespace k230 {

std::string cpu_objection() { return ""; }

}  // namespace k230

#endif

namespace {

// Before everything else: constructors that register kernels may already use vector instructions.
__attribute__((constructor(101))) void refuse_unfit_core() {
  const std::string objection = k230::cpu_objection();
  if (!objection.empty()) {
    k230::emit(k230::fail_frame("-", k230::FailCode::kCpu, objection));
    std::_Exit(1);
  }
}

}  // namespace
