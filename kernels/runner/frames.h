#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "failure.h"

namespace k230 {

/// Longest line, with CRC but without the newline; a console line of msh is cut at 255.
constexpr std::size_t kFrameMax = 120;

/// `body` with `*` and its CRC-16 behind it; control characters and bytes over 0x7e become '?'.
std::string frame_line(const std::string& body);

std::string begin_frame(const std::string& run, uint64_t total, uint64_t resumed);
std::string item_frame(
    const std::string& run, uint64_t seq, uint64_t id, int32_t status, double milliseconds);
std::string end_frame(
    const std::string& run, uint64_t ok, uint64_t failed, uint64_t records, double load_ms);

/// `reason` is shortened so that the line keeps within kFrameMax.
std::string fail_frame(const std::string& run, FailCode code, const std::string& reason);

/// Writes the line to stdout at once, on a line of its own.
void emit(const std::string& line);

}  // namespace k230
