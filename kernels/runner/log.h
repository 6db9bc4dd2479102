#pragma once

#include <string>
#include <vector>

namespace k230 {

/// What ExecuTorch said at level error or fatal since the last call.
std::vector<std::string> take_errors();

/// With `true` only errors are printed: the console of the board carries 11 kB/s.
void set_quiet(bool quiet);

/// A line on stderr in ExecuTorch's own form.
void log_info(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace k230
