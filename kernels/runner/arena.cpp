#include "arena.h"

#include <new>

namespace k230 {

void* Arena::allocate(size_t size, size_t alignment) {
  if (!isPowerOf2(alignment)) {
    return nullptr;
  }
  const std::size_t room = size + alignment;
  if (room < size) {
    return nullptr;
  }
  wanted_ += room;
  if (room <= capacity_ - used_) {
    void* start = alignPointer(block_.get() + used_, alignment);
    used_ += room;
    return start;
  }
  std::unique_ptr<uint8_t[]> extra(new (std::nothrow) uint8_t[room]);
  if (extra == nullptr) {
    return nullptr;
  }
  overflow_.push_back(std::move(extra));
  return alignPointer(overflow_.back().get(), alignment);
}

void Arena::reset() {
  if (!overflow_.empty()) {
    overflow_.clear();
    block_.reset();
    block_.reset(new (std::nothrow) uint8_t[wanted_]);
    capacity_ = block_ != nullptr ? wanted_ : 0;
  }
  used_ = 0;
  wanted_ = 0;
}

}  // namespace k230
