#pragma once

#include "args.h"

namespace k230 {

/// All samples of a list through one loaded model into a results file. Throws Failure.
/// Returns the number of samples of this list that have no good record at the end.
unsigned long run_batch(const Options& options);

}  // namespace k230
