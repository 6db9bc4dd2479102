#pragma once

#include "args.h"

namespace k230 {

/// One program, one set of inputs, `num_executions` times. Throws Failure.
void run_single(const Options& options);

}  // namespace k230
