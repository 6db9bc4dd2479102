#pragma once

#include "args.h"
#include "model.h"

namespace k230 {

/// Writes the outputs to stdout: all values one a line, or the first and last hundred.
void print_outputs(const Model& model, PrintOutput how);

}  // namespace k230
