#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <memory>
#include <string>

namespace k230 {

/// A tracer, or nothing when `path` is empty. Throws Failure (usage) in a build without one.
std::unique_ptr<executorch::runtime::EventTracer> make_tracer(const std::string& path);

/// Forgets what was traced so far (warm-up runs).
void forget_trace(executorch::runtime::EventTracer* tracer);

/// Writes the ETDump. Throws Failure (results) when it cannot be made or written.
void write_trace(executorch::runtime::EventTracer* tracer, const std::string& path);

}  // namespace k230
