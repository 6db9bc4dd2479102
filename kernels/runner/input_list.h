#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace k230 {

enum class InputType { kFloat32, kUint8 };

/// One line of the index: where a sample's bytes are and what they must be.
struct Sample {
  uint64_t id = 0;
  std::size_t file = 0;  ///< index into InputList::files
  uint64_t offset = 0;
  uint32_t crc = 0;
};

struct InputList {
  InputType type = InputType::kFloat32;
  std::size_t nbytes = 0;  ///< of each sample, as stored
  std::vector<float> mean;  ///< per channel, uint8 only
  std::vector<float> std;
  std::vector<std::string> files;  ///< paths that can be opened from here
  std::vector<Sample> samples;
  uint32_t crc = 0;  ///< of the list file itself
};

/// Reads and checks the index at `path`. Throws Failure (list) naming the line at fault.
InputList read_input_list(const std::string& path);

/// The same for text already in memory; files are taken relative to `folder`.
InputList parse_input_list(const std::string& text, const std::string& folder);

}  // namespace k230
