#pragma once

namespace k230 {

/// What the runner was built from, as JSON; the build generates it, and it is its own ELF section.
const char* manifest_json();

}  // namespace k230
