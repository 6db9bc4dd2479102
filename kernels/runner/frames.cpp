#include "frames.h"

#include <cinttypes>
#include <cstdio>

#include "crc.h"

namespace k230 {
namespace {

constexpr std::size_t kCrcChars = 5;  // '*' and four digits

std::string printable(std::string text) {
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) {
      c = '?';
    }
  }
  return text;
}

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char buffer[2 * kFrameMax];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return frame_line(buffer);
}

}  // namespace

const char* name_of(FailCode code) {
  switch (code) {
    case FailCode::kUsage:
      return "usage";
    case FailCode::kModel:
      return "model";
    case FailCode::kOperators:
      return "operators";
    case FailCode::kList:
      return "list";
    case FailCode::kResults:
      return "results";
    case FailCode::kMemory:
      return "memory";
    case FailCode::kCpu:
      return "cpu";
  }
  return "usage";
}

std::string frame_line(const std::string& body) {
  const std::string clean = printable(body);
  char crc[kCrcChars + 1];
  std::snprintf(crc, sizeof crc, "*%04x", static_cast<unsigned>(crc16(clean.data(), clean.size())));
  return clean + crc;
}

std::string begin_frame(const std::string& run, uint64_t total, uint64_t resumed) {
  return formatted(
      "@K230 begin run=%s total=%" PRIu64 " resumed=%" PRIu64, run.c_str(), total, resumed);
}

std::string item_frame(
    const std::string& run, uint64_t seq, uint64_t id, int32_t status, double milliseconds) {
  return formatted(
      "@K230 item run=%s seq=%" PRIu64 " id=%" PRIu64 " status=%" PRId32 " ms=%.3f", run.c_str(),
      seq, id, status, milliseconds);
}

std::string end_frame(
    const std::string& run, uint64_t ok, uint64_t failed, uint64_t records, double load_ms) {
  return formatted(
      "@K230 end run=%s ok=%" PRIu64 " failed=%" PRIu64 " records=%" PRIu64 " load_ms=%.3f",
      run.c_str(), ok, failed, records, load_ms);
}

std::string fail_frame(const std::string& run, FailCode code, const std::string& reason) {
  std::string text = reason;
  for (char& c : text) {
    if (c == '"' || c == '*') {
      c = '\'';
    }
  }
  const std::string head = "@K230 fail run=" + run + " code=" + name_of(code) + " reason=\"";
  const std::size_t room = kFrameMax - kCrcChars - head.size() - 1;
  if (text.size() > room) {
    text = text.substr(0, room - 3) + "...";
  }
  return frame_line(head + text + "\"");
}

void emit(const std::string& line) {
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace k230
