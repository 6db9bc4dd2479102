// Convolutions to compare with: what the kernels are measured against, not for use.
#pragma once

#include "k230/conv2d.h"

namespace k230::bench {

// Scalar loops that compute the linear index of input and weight anew at every tap, as a portable
// kernel for any memory layout does.
void conv2d_portable_shape(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                           float* y);

// Vectors over the columns of an output row, one output channel at a time, the accumulator in
// registers. On a core without V: false, and nothing is done.
bool conv2d_naive_rvv(const Conv2dShape& s, const float* x, const float* w, const float* bias,
                      float* y);

}  // namespace k230::bench
