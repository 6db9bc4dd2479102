#include "k230/cpu.h"

#include <atomic>

#include "isa_table.h"

#if defined(__riscv)
#include <csetjmp>
#include <csignal>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

namespace k230 {
namespace {

constexpr unsigned kMinimumVlen = 128;

#if defined(__riscv)
sigjmp_buf trapped;

void on_trap(int) { siglongjmp(trapped, 1); }

// VLEN of this core, 0 when it has no vector unit (reading vlenb traps then). This file is
// compiled without the vector extension, so the register goes by its number.
unsigned probe_vlen() {
#if defined(__linux__)
  constexpr unsigned long kHwcapV = 1ul << ('V' - 'A');
  const unsigned long hwcap = getauxval(AT_HWCAP);
  if (hwcap != 0 && (hwcap & kHwcapV) == 0) return 0;
#endif
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = on_trap;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGILL, &action, &before) != 0) return 0;
  unsigned long bytes = 0;
  if (sigsetjmp(trapped, 1) == 0) {
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
  }
  sigaction(SIGILL, &before, nullptr);
  return static_cast<unsigned>(bytes * 8);
}
#else
unsigned probe_vlen() { return 0; }
#endif

CpuReport look() {
#ifdef K230_KERNELS_RVV
  const bool compiled = true;
#else
  const bool compiled = false;
#endif
  const unsigned vlen = probe_vlen();
  const char* reason = "";
  if (!compiled) {
    reason = "the kernels were built without the vector extension";
  } else if (vlen == 0) {
    reason = "this core has no vector unit";
  } else if (vlen < kMinimumVlen) {
    reason = "this core's vectors are shorter than 128 bits";
  }
  return {compiled, reason[0] == '\0', vlen, reason};
}

const detail::IsaTable* table_of(Isa isa) {
#ifdef K230_KERNELS_RVV
  if (isa == Isa::kRvv) return inspect_cpu().rvv_usable ? &detail::rvv_table() : nullptr;
#endif
  return isa == Isa::kScalar ? &detail::scalar_table() : nullptr;
}

std::atomic<const detail::IsaTable*> in_use{nullptr};

}  // namespace

CpuReport inspect_cpu() {
  static const CpuReport report = look();
  return report;
}

bool select_isa(Isa isa) {
  const detail::IsaTable* table = table_of(isa);
  if (table == nullptr) return false;
  in_use.store(table, std::memory_order_release);
  return true;
}

Isa active_isa() {
  return &detail::active() == &detail::scalar_table() ? Isa::kScalar : Isa::kRvv;
}

namespace detail {

const IsaTable& active() {
  const IsaTable* table = in_use.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = inspect_cpu().rvv_usable ? table_of(Isa::kRvv) : &scalar_table();
    in_use.store(table, std::memory_order_release);
  }
  return *table;
}

}  // namespace detail
}  // namespace k230
