#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace k230 {

enum class ElementType { kFloat32, kOther };

/// What a method says of one of its tensors before it runs.
struct TensorSpec {
  std::vector<int32_t> sizes;
  ElementType type = ElementType::kOther;
  std::size_t count = 0;   ///< elements
  std::size_t nbytes = 0;
};

}  // namespace k230
