#include "results_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crc.h"
#include "failure.h"

namespace k230 {
namespace {

constexpr char kMagic[] = "K230RES1";
constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kRunIdOffset = 16;
constexpr std::size_t kRunIdSize = 32;
constexpr uint32_t kRecordMagic = 0x4352324B;
constexpr std::size_t kRecordHead = 40;
constexpr std::size_t kCrcSize = 4;

// All targets are little-endian (checked in CMakeLists.txt), so values are copied as they are.
template <typename T>
void put(uint8_t* bytes, std::size_t offset, T value) {
  std::memcpy(bytes + offset, &value, sizeof value);
}

template <typename T>
T take(const uint8_t* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

std::vector<uint8_t> header_of(const RunIdentity& identity) {
  std::vector<uint8_t> header(kHeaderSize, 0);
  std::memcpy(header.data(), kMagic, 8);
  put<uint32_t>(header.data(), 8, kHeaderSize);
  put<uint32_t>(header.data(), 12, identity.values);
  std::memcpy(
      header.data() + kRunIdOffset, identity.run_id.data(),
      std::min(identity.run_id.size(), kRunIdSize));
  put<uint32_t>(header.data(), 48, identity.model_crc);
  put<uint32_t>(header.data(), 52, identity.list_crc);
  put<uint32_t>(header.data(), 60, crc32(header.data(), 60));
  return header;
}

}  // namespace

ResultsFile::ResultsFile(const std::string& path, const RunIdentity& identity, bool resume)
    : path_(path), identity_(identity) {
  buffer_.resize(kRecordHead + identity.values * sizeof(float) + kCrcSize);
  if (!resume || !take_over()) {
    begin_anew();
  }
}

void ResultsFile::refuse(const char* what) const {
  const std::string reason = std::strerror(errno);
  throw Failure(FailCode::kResults, std::string(what) + " " + path_ + ": " + reason);
}

void ResultsFile::begin_anew() {
  file_ = FileHandle(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644));
  const std::vector<uint8_t> header = header_of(identity_);
  if (!file_ || !write_exactly(file_.get(), header.data(), header.size())) {
    refuse("cannot write");
  }
}

bool ResultsFile::take_over() {
  file_ = FileHandle(::open(path_.c_str(), O_RDWR));
  std::vector<uint8_t> found(kHeaderSize);
  if (!file_ || !read_exactly(file_.get(), found.data(), found.size()) ||
      found != header_of(identity_)) {
    return false;
  }
  cut_at(scan_records());
  return true;
}

/// Reads record by record and returns where the good ones end.
uint64_t ResultsFile::scan_records() {
  uint64_t good_end = kHeaderSize;
  for (;;) {
    uint8_t* bytes = buffer_.data();
    if (!read_exactly(file_.get(), bytes, kRecordHead)) {
      return good_end;
    }
    const uint32_t values = take<uint32_t>(bytes, 20);
    const int32_t status = take<int32_t>(bytes, 16);
    const bool known = take<uint32_t>(bytes, 0) == kRecordMagic &&
                       take<uint32_t>(bytes, 4) == static_cast<uint32_t>(records_) &&
                       values == (status == 0 ? identity_.values : 0);
    const std::size_t body = values * sizeof(float);
    if (!known || !read_exactly(file_.get(), bytes + kRecordHead, body + kCrcSize) ||
        take<uint32_t>(bytes, kRecordHead + body) != crc32(bytes, kRecordHead + body)) {
      return good_end;
    }
    if (status == 0) {
      finished_.insert(take<uint64_t>(bytes, 8));
    }
    ++records_;
    good_end += kRecordHead + body + kCrcSize;
  }
}

void ResultsFile::cut_at(uint64_t size) {
  const off_t end = static_cast<off_t>(size);
  if (::ftruncate(file_.get(), end) != 0) {
    // A file layer without truncation (the shared folder of RT-Smart): write the good part anew.
    std::vector<uint8_t> good(size);
    if (::lseek(file_.get(), 0, SEEK_SET) < 0 ||
        !read_exactly(file_.get(), good.data(), good.size())) {
      refuse("cannot read");
    }
    file_ = FileHandle(::open(path_.c_str(), O_RDWR | O_TRUNC));
    if (!file_ || !write_exactly(file_.get(), good.data(), good.size())) {
      refuse("cannot write");
    }
  }
  if (::lseek(file_.get(), end, SEEK_SET) != end) {
    refuse("cannot go to the end of");
  }
}

void ResultsFile::append(const Record& record, const float* values) {
  uint8_t* bytes = buffer_.data();
  const uint32_t count = record.status == 0 ? identity_.values : 0;
  const std::size_t body = count * sizeof(float);
  put<uint32_t>(bytes, 0, kRecordMagic);
  put<uint32_t>(bytes, 4, static_cast<uint32_t>(records_));
  put<uint64_t>(bytes, 8, record.id);
  put<int32_t>(bytes, 16, record.status);
  put<uint32_t>(bytes, 20, count);
  put<uint64_t>(bytes, 24, record.latency_ns);
  put<uint32_t>(bytes, 32, record.input_crc);
  put<uint32_t>(bytes, 36, record.executions);
  if (body > 0) {
    std::memcpy(bytes + kRecordHead, values, body);
  }
  put<uint32_t>(bytes, kRecordHead + body, crc32(bytes, kRecordHead + body));
  if (!write_exactly(file_.get(), bytes, kRecordHead + body + kCrcSize)) {
    refuse("cannot write");
  }
  ++records_;
}

void ResultsFile::sync() {
  // Some file layers have no fsync: then there is nothing more that could be done.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) {
    refuse("cannot flush");
  }
}

}  // namespace k230
