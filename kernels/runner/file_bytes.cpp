#include "file_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

// Plain read, write and lseek only: the RT-Smart core maps no files and its file layer passes
// these through.

namespace k230 {

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool read_exactly(int fd, void* data, std::size_t size) {
  auto* at = static_cast<uint8_t*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_exactly(int fd, const void* data, std::size_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const ssize_t put = ::write(fd, at, size);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      if (put == 0) {
        errno = ENOSPC;
      }
      return false;
    }
    at += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

bool read_whole(const std::string& path, std::string& bytes) {
  const FileHandle file(::open(path.c_str(), O_RDONLY));
  if (!file) {
    return false;
  }
  bytes.clear();
  char block[16384];
  for (;;) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return false;
    }
    if (got == 0) {
      return true;
    }
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

bool write_whole(const std::string& path, const void* data, std::size_t size) {
  const FileHandle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return file && write_exactly(file.get(), data, size);
}

}  // namespace k230
