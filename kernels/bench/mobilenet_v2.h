// The layers of torchvision's mobilenet_v2 at width 1.0 and 224 x 224, batch norm folded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "k230/conv2d.h"

namespace k230::bench {

enum class OpKind { kConv, kHardtanh, kAdd, kMean, kLinear };

// One call of the graph. Buffers are numbers of activation slots.
struct Op {
  OpKind kind;
  std::string name;
  Conv2dShape conv;        // kConv
  bool relu6 = false;      // kConv: followed by a clamp to [0, 6]
  int64_t count = 0;       // elements of the output
  int64_t k = 0;           // kLinear: inputs; kMean: elements per mean
  int in = 0, in2 = 0, out = 0;
  std::size_t weight = 0;  // offset of the weights, then of the bias, in floats
  std::size_t bias = 0;

  int64_t macs() const;
};

struct Network {
  std::vector<Op> ops;
  std::size_t weights = 0;     // floats
  int slots = 0;
  int64_t slot_floats = 0;     // size of the largest activation
};

// fused: the clamp is part of the convolution; otherwise hardtanh is a call of its own.
Network mobilenet_v2(bool fused);

}  // namespace k230::bench
