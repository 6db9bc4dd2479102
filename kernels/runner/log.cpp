#include "log.h"

#include <executorch/runtime/platform/platform.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace k230 {
namespace {

constexpr std::size_t kErrorsKept = 256;

bool g_quiet = false;

// Not a plain global: kernels register themselves, and may complain, before main.
std::vector<std::string>& errors() {
  static std::vector<std::string> messages;
  return messages;
}

void print_line(uint64_t ns, char level, const std::string& where, const char* text) {
  const uint64_t micros = ns / 1000;
  const uint64_t seconds = micros / 1000000;
  std::fprintf(
      stderr, "%c %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64 " executorch:%s] %s\n",
      level, seconds / 3600, seconds / 60 % 60, seconds % 60, micros % 1000000, where.c_str(),
      text);
  std::fflush(stderr);
}

uint64_t nanoseconds() {
  const et_tick_ratio_t ratio = et_pal_ticks_to_ns_multiplier();
  return et_pal_current_ticks() * ratio.numerator / ratio.denominator;
}

}  // namespace

std::vector<std::string> take_errors() {
  std::vector<std::string> taken;
  taken.swap(errors());
  return taken;
}

void set_quiet(bool quiet) { g_quiet = quiet; }

void log_info(const char* format, ...) {
  if (g_quiet) {
    return;
  }
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  print_line(nanoseconds(), 'I', "k230_runner", text);
}

}  // namespace k230

// Replaces the runtime's weak default: the names of missing operators are only told by log lines.
extern "C" void et_pal_emit_log_message(
    et_timestamp_t /*timestamp*/,
    et_pal_log_level_t level,
    const char* filename,
    const char* /*function*/,
    size_t line,
    const char* message,
    size_t length) {
  const bool is_error = level == kError || level == kFatal;
  const std::string text(message, strnlen(message, length));
  if (is_error && k230::errors().size() < k230::kErrorsKept) {
    k230::errors().push_back(text);
  }
  if (is_error || !k230::g_quiet) {
    k230::print_line(
        k230::nanoseconds(), static_cast<char>(level),
        std::string(filename) + ":" + std::to_string(line), text.c_str());
  }
}
