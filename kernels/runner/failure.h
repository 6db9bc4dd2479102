#pragma once

#include <stdexcept>
#include <string>

namespace k230 {

/// The reasons for which the runner gives up; the names appear in the `fail` frame.
enum class FailCode { kUsage, kModel, kOperators, kList, kResults, kMemory, kCpu };

const char* name_of(FailCode code);

/// Ends the run with one `fail` frame and a nonzero exit status.
class Failure : public std::runtime_error {
 public:
  Failure(FailCode code, const std::string& reason) : std::runtime_error(reason), code_(code) {}
  FailCode code() const { return code_; }

 private:
  FailCode code_;
};

}  // namespace k230
