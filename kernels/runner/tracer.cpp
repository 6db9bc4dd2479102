#include "tracer.h"

#include "failure.h"

#ifdef K230_WITH_TRACER

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "file_bytes.h"
#include "log.h"

namespace k230 {

using executorch::etdump::ETDumpGen;
using executorch::runtime::EventTracer;

std::unique_ptr<EventTracer> make_tracer(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<ETDumpGen>();
}

void forget_trace(EventTracer* tracer) {
  if (tracer != nullptr) {
    static_cast<ETDumpGen*>(tracer)->reset();
  }
}

void write_trace(EventTracer* tracer, const std::string& path) {
  if (tracer == nullptr) {
    return;
  }
  const executorch::etdump::ETDumpResult dump = static_cast<ETDumpGen*>(tracer)->get_etdump_data();
  if (dump.buf == nullptr || dump.size == 0) {
    throw Failure(FailCode::kResults, "the trace is empty");
  }
  const bool written = write_whole(path, dump.buf, dump.size);
  const int reason = errno;
  std::free(dump.buf);
  if (!written) {
    throw Failure(FailCode::kResults, "cannot write " + path + ": " + std::strerror(reason));
  }
  log_info("ETDump written to file '%s'.", path.c_str());
}

}  // namespace k230

#else

namespace k230 {

using executorch::runtime::EventTracer;

std::unique_ptr<EventTracer> make_tracer(const std::string& path) {
  if (!path.empty()) {
    throw Failure(
        FailCode::kUsage, "--etdump_path: this runner was built without tracer, deploy one with it");
  }
  return nullptr;
}

void forget_trace(EventTracer* /*tracer*/) {}

void write_trace(EventTracer* /*tracer*/, const std::string& /*path*/) {}

}  // namespace k230

#endif
