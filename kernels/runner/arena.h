#pragma once

#include <executorch/runtime/core/memory_allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace k230 {

/// Memory for the runtime. It grows as asked for, and keeps one block of the size that was needed
/// between two resets: the runtime resets the scratch memory of kernels after every instruction, and
/// after the first inference no kernel should wait for the system.
class Arena final : public executorch::runtime::MemoryAllocator {
 public:
  Arena() : MemoryAllocator(0, nullptr) {}

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override;
  void reset() override;

  uint8_t* base_address() const override { return block_.get(); }
  uint32_t size() const override { return static_cast<uint32_t>(capacity_); }

 private:
  std::unique_ptr<uint8_t[]> block_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t wanted_ = 0;  ///< bytes asked for since the last reset, with alignment
  std::vector<std::unique_ptr<uint8_t[]>> overflow_;
};

}  // namespace k230
