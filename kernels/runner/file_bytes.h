#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace k230 {

/// The whole file; false with errno set when it cannot be read.
bool read_whole(const std::string& path, std::string& bytes);

/// Creates or replaces the file; false with errno set when not all bytes could be written.
bool write_whole(const std::string& path, const void* data, std::size_t size);

/// Reads exactly `size` bytes from the descriptor at its position; false at a short read too.
bool read_exactly(int fd, void* data, std::size_t size);

/// Writes all bytes, also over several short writes; false with errno set on failure.
bool write_exactly(int fd, const void* data, std::size_t size);

/// An open descriptor that closes itself.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace k230
