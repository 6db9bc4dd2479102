#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "file_bytes.h"
#include "input_list.h"
#include "tensor_spec.h"

namespace k230 {

/// Reads samples of a list one after the other into one buffer of the model's input type.
class SampleReader {
 public:
  enum class Outcome { kGood, kCrcDiffers, kUnreadable };

  /// Throws Failure (list) when samples of the list do not fit the model's input.
  SampleReader(const InputList& list, const TensorSpec& input);

  /// Fetches the bytes, checks them, and normalises uint8. `data()` is valid after kGood only.
  Outcome read(const Sample& sample);

  const void* data() const;
  std::size_t nbytes() const { return input_.nbytes; }

  /// CRC-32 of the bytes last read; 0 after kUnreadable.
  uint32_t crc() const { return crc_; }

 private:
  bool fetch(const Sample& sample);
  void normalise();

  const InputList& list_;
  const TensorSpec& input_;
  std::vector<uint8_t> bytes_;
  std::vector<float> values_;  ///< uint8 only
  std::vector<float> table_;   ///< uint8 only: 256 values for each channel
  std::size_t plane_ = 0;
  FileHandle file_;
  std::size_t file_index_ = SIZE_MAX;
  uint32_t crc_ = 0;
};

}  // namespace k230
