#pragma once

#include <executorch/runtime/core/memory_allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace k230 {

/// Scratch memory of kernels. The runtime resets it after every instruction; it keeps its largest
/// block from one to the next, so that after the first inference no kernel waits for the system.
class TempArena final : public executorch::runtime::MemoryAllocator {
 public:
  TempArena() : MemoryAllocator(0, nullptr) {}

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
