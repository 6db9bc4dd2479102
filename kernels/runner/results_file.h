#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "file_bytes.h"

namespace k230 {

constexpr int32_t kStatusCrcDiffers = 0x10001;
constexpr int32_t kStatusUnreadable = 0x10002;

/// What ties a results file to a run: a file with another header is never continued.
struct RunIdentity {
  std::string run_id;
  uint32_t model_crc = 0;
  uint32_t list_crc = 0;
  uint32_t values = 0;  ///< float32 values in each good record
};

struct Record {
  uint64_t id = 0;
  int32_t status = 0;
  uint64_t latency_ns = 0;
  uint32_t input_crc = 0;
  uint32_t executions = 0;
};

/// Appends records; each is handed to the operating system as soon as it is made.
class ResultsFile {
 public:
  /// With `resume` a file of the same run is cut behind its last good record and continued; any
  /// other file is begun anew. Throws Failure (results).
  ResultsFile(const std::string& path, const RunIdentity& identity, bool resume);

  /// `values` points to identity.values floats, and is not looked at when status is not 0.
  void append(const Record& record, const float* values);

  /// Asks for the bytes to reach the card.
  void sync();

  uint64_t records() const { return records_; }

  /// Samples that have a record with status 0: they need not be computed again.
  const std::unordered_set<uint64_t>& finished() const { return finished_; }

 private:
  bool take_over();
  uint64_t scan_records();
  void cut_at(uint64_t size);
  void begin_anew();
  [[noreturn]] void refuse(const char* what) const;

  std::string path_;
  RunIdentity identity_;
  FileHandle file_;
  uint64_t records_ = 0;
  std::unordered_set<uint64_t> finished_;
  std::vector<uint8_t> buffer_;
};

}  // namespace k230
