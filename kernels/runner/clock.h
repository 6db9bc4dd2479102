#pragma once

#include <chrono>
#include <cstdint>

namespace k230 {

using Clock = std::chrono::steady_clock;

inline uint64_t ns_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

inline double to_ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace k230
