#pragma once

#include <cstddef>
#include <cstdint>

namespace k230 {

/// CRC-32 as zlib computes it; `previous` is the value of the bytes before, 0 at the start.
uint32_t crc32(const void* data, std::size_t size, uint32_t previous = 0);

/// CRC-16/CCITT-FALSE (polynomial 0x1021, start 0xffff, not reflected).
uint16_t crc16(const char* text, std::size_t size);

}  // namespace k230
