#include "crc.h"

#include <array>

namespace k230 {
namespace {

constexpr int kLanes = 4;

using Tables = std::array<std::array<uint32_t, 256>, kLanes>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1u) != 0 ? 0xedb88320u : 0u);
    }
    tables[0][byte] = value;
  }
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[lane - 1][byte];
      tables[lane][byte] = (before >> 8) ^ tables[0][before & 0xffu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(const void* data, std::size_t size, uint32_t previous) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint32_t crc = ~previous;
  // Four bytes at a time: an input of 600 kB is checked before every inference.
  for (; size >= kLanes; size -= kLanes, bytes += kLanes) {
    crc ^= static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
           static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
    crc = kTables[3][crc & 0xffu] ^ kTables[2][(crc >> 8) & 0xffu] ^
          kTables[1][(crc >> 16) & 0xffu] ^ kTables[0][crc >> 24];
  }
  for (; size > 0; --size, ++bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xffu];
  }
  return ~crc;
}

uint16_t crc16(const char* text, std::size_t size) {
  uint16_t crc = 0xffff;
  for (std::size_t i = 0; i < size; ++i) {
    crc = static_cast<uint16_t>(crc ^ (static_cast<uint8_t>(text[i]) << 8));
    for (int bit = 0; bit < 8; ++bit) {
      const bool high = (crc & 0x8000) != 0;
      crc = static_cast<uint16_t>(crc << 1);
      if (high) {
        crc = static_cast<uint16_t>(crc ^ 0x1021);
      }
    }
  }
  return crc;
}

}  // namespace k230
