#include "sample_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "crc.h"
#include "failure.h"

namespace k230 {
namespace {

constexpr std::size_t kByteValues = 256;

void check_size(const InputList& list, const TensorSpec& input) {
  if (input.type != ElementType::kFloat32) {
    throw Failure(FailCode::kModel, "its input is not float32: use --inputs for one inference");
  }
  const std::size_t expected = list.type == InputType::kUint8 ? input.count : input.nbytes;
  if (list.nbytes != expected) {
    throw Failure(
        FailCode::kList, "samples have " + std::to_string(list.nbytes) +
                             " bytes, the model's input needs " + std::to_string(expected));
  }
}

}  // namespace

SampleReader::SampleReader(const InputList& list, const TensorSpec& input)
    : list_(list), input_(input) {
  check_size(list, input);
  bytes_.resize(list.nbytes);
  if (list.type == InputType::kFloat32) {
    return;
  }
  const std::size_t channels = list.mean.size();
  if (input.sizes.size() < 2 || static_cast<std::size_t>(input.sizes[1]) != channels) {
    throw Failure(
        FailCode::kList,
        "mean and std have " + std::to_string(channels) + " channels, the model's input has others");
  }
  values_.resize(input.count);
  plane_ = input.count / (channels * static_cast<std::size_t>(input.sizes[0]));
  table_.resize(channels * kByteValues);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t value = 0; value < kByteValues; ++value) {
      // float32, division by std, in this order: the file format says so, and the host does so
      const float scaled = static_cast<float>(value) / 255.0f;
      table_[channel * kByteValues + value] =
          (scaled - list.mean[channel]) / list.std[channel];
    }
  }
}

const void* SampleReader::data() const {
  return list_.type == InputType::kUint8 ? static_cast<const void*>(values_.data())
                                         : static_cast<const void*>(bytes_.data());
}

bool SampleReader::fetch(const Sample& sample) {
  if (file_index_ != sample.file) {
    file_ = FileHandle(::open(list_.files[sample.file].c_str(), O_RDONLY));
    file_index_ = file_ ? sample.file : SIZE_MAX;
  }
  return file_ && ::lseek(file_.get(), static_cast<off_t>(sample.offset), SEEK_SET) >= 0 &&
         read_exactly(file_.get(), bytes_.data(), bytes_.size());
}

void SampleReader::normalise() {
  const std::size_t channels = list_.mean.size();
  for (std::size_t start = 0, channel = 0; start < bytes_.size(); start += plane_) {
    const float* table = &table_[channel * kByteValues];
    for (std::size_t i = start; i < start + plane_; ++i) {
      values_[i] = table[bytes_[i]];
    }
    channel = channel + 1 == channels ? 0 : channel + 1;
  }
}

SampleReader::Outcome SampleReader::read(const Sample& sample) {
  crc_ = 0;
  if (!fetch(sample)) {
    return Outcome::kUnreadable;
  }
  crc_ = crc32(bytes_.data(), bytes_.size());
  if (crc_ != sample.crc) {
    return Outcome::kCrcDiffers;
  }
  if (list_.type == InputType::kUint8) {
    normalise();
  }
  return Outcome::kGood;
}

}  // namespace k230
