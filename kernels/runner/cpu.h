#pragma once

#include <string>

namespace k230 {

/// Why this processor cannot run what was built in, or an empty text.
std::string cpu_objection();

}  // namespace k230
