// Convolution in float64, from the definition.
#pragma once

#include <string>
#include <vector>

#include "k230/conv2d.h"
#include "support.h"

namespace k230::test {

// One Expected per output element, in order. Padding counts as zeros that are multiplied, except
// in the depthwise 3x3 path, which skips it: only an infinite weight tells them apart, and ATen
// does the same.
std::vector<Expected> reference(const Conv2dShape& s, const Buffer& x, const Buffer& w,
                                const float* bias);

std::string describe(const Conv2dShape& s);

}  // namespace k230::test
