// Which kernels this core can run, found out without executing anything it might trap on.
#pragma once

namespace k230 {

enum class Isa {
  kScalar,  // plain C++, every core
  kRvv,     // RISC-V vector extension 1.0 with VLEN >= 128
};

struct CpuReport {
  bool rvv_compiled;    // the library holds RVV kernels
  bool rvv_usable;      // ... and this core runs them
  unsigned vlen_bits;   // 0 when the core has no vector unit
  const char* reason;   // why RVV is not usable; "" when it is
};

// Looks at the core. Executes no vector instruction unless the operating system reports the
// extension; a core that traps on the probe is reported as having no vector unit.
CpuReport inspect_cpu();

// The kernels in use: RVV when usable, scalar otherwise. Decided once, at the first call.
Isa active_isa();

// Forces a kernel set (tests, the bench). Returns false, and changes nothing, when this core or
// build cannot run it. Not to be called while kernels run in other threads.
bool select_isa(Isa isa);

}  // namespace k230
