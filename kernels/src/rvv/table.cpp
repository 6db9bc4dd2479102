#include "../isa_table.h"
#include "primitives.h"
#include "rvv.h"

namespace k230::detail {
namespace {

constexpr unsigned kInvalid = 1u << 4;  // NV of fflags

unsigned fflags() {
  unsigned flags;
  __asm__ volatile("frflags %0" : "=r"(flags) : : "memory");
  return flags;
}

void set_fflags(unsigned flags) { __asm__ volatile("fsflags %0" : : "r"(flags) : "memory"); }

// Every operation that makes a NaN out of numbers raises "invalid".
unsigned nan_watch_begin() {
  const unsigned before = fflags();
  set_fflags(before & ~kInvalid);
  return before;
}

bool nan_watch_end(unsigned before) {
  const unsigned now = fflags();
  set_fflags(now | before);
  return (now & kInvalid) != 0;
}

}  // namespace

const IsaTable& rvv_table() {
  static const IsaTable table = {
      static_cast<int64_t>(4 * rvv::lanes_m1()),
      rvv::gemm,
      rvv::depthwise3x3,
      nan_watch_begin,
      nan_watch_end,
      rvv::copy_strided,
      rvv::dot_rows,
      rvv::gemv_columns,
      rvv::clamp,
      rvv::add,
      rvv::scale_shift,
      rvv::sum,
  };
  return table;
}

}  // namespace k230::detail
