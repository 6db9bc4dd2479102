// Buffers between guard pages, random numbers and the checks the kernel tests share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace k230::test {

// Where a buffer touches an inaccessible page: reading or writing one float beyond that side is a
// segmentation fault.
enum class Guard { kEnd, kStart };

class Buffer {
 public:
  Buffer(int64_t count, Guard guard) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    const std::size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    void* base = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) fail("mmap");
    base_ = static_cast<char*>(base);
    if (inner > 0 && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
    char* start = base_ + page + (guard == Guard::kEnd ? inner - bytes : 0);
    data_ = reinterpret_cast<float*>(start);
    // an unwritten output shows
    for (int64_t i = 0; i < count; ++i) data_[i] = 12345.0f;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { munmap(base_, size_); }

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return count_; }
  float& operator[](int64_t i) { return data_[i]; }
  float operator[](int64_t i) const { return data_[i]; }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::perror(what);
    std::abort();
  }

  int64_t count_;
  std::size_t size_ = 0;
  char* base_ = nullptr;
  float* data_ = nullptr;
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}

  uint32_t bits() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  float uniform(float scale) {
    return (static_cast<float>(bits()) / 2147483648.0f - 1.0f) * scale;
  }
  void fill(Buffer& buffer, float scale = 1.0f) {
    for (int64_t i = 0; i < buffer.size(); ++i) buffer[i] = uniform(scale);
  }

 private:
  uint64_t state_;
};

// A value computed in float64 and the error float32 may have: 2 * terms * eps * sum|products|,
// and half a denormal per operation.
struct Expected {
  double value = 0.0;
  double magnitude = 0.0;
  double terms = 0.0;

  void add(double product) {
    value += product;
    magnitude += std::fabs(product);
    terms += 1.0;
  }
  double tolerance() const {
    return 2.0 * terms * std::numeric_limits<float>::epsilon() * magnitude +
           terms * std::numeric_limits<float>::denorm_min();
  }
};

inline double clamped(double v, double low, double high) {
  if (std::isnan(v) || std::isnan(low) || std::isnan(high)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  v = v < low ? low : v;
  return v > high ? high : v;
}

class Checker {
 public:
  // Compares one number; remembers the first failure of each case.
  void number(float got, const Expected& want, const std::string& what) {
    number(got, want.value, want.tolerance(), what);
  }
  void number(float got, double want, double tolerance, const std::string& what) {
    ++numbers_;
    bool good = false;
    if (std::isnan(want)) {
      good = std::isnan(got);
    } else if (std::isinf(want)) {
      good = static_cast<double>(got) == want;
    } else {
      good = std::fabs(got - want) <= tolerance;
    }
    if (!good) fail(what, got, want, tolerance);
  }
  void that(bool good, const std::string& what) {
    ++numbers_;
    if (!good) fail(what, 0.0, 1.0, 0.0);
  }
  int result(const char* name) const {
    std::printf("%s: %lld comparisons, %lld failed\n", name, static_cast<long long>(numbers_),
                static_cast<long long>(failures_));
    return failures_ == 0 && numbers_ > 0 ? 0 : 1;
  }

 private:
  void fail(const std::string& what, double got, double want, double tolerance) {
    if (failures_++ < 20) {
      std::printf("FAIL %s: got %.9g, want %.9g +- %.3g\n", what.c_str(), got, want, tolerance);
    }
  }

  int64_t numbers_ = 0;
  int64_t failures_ = 0;
};

// Suites; `extended` takes the long grids.
int test_conv2d(bool extended);
int test_special_values();
int test_generic();
int test_dense(bool extended);
int test_elementwise();
int test_dispatch();

}  // namespace k230::test
