// Element-wise operations and reductions, over lengths around the register groups.
#include "k230/elementwise.h"

#include "support.h"

namespace k230::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

void sprinkle(Random& random, Buffer& b) {
  random.fill(b, 8.0f);
  const float specials[] = {kNan, kInf, -kInf, 1e-41f, -0.0f, 6.0f, 0.0f};
  for (int64_t i = 0; i < b.size(); i += random.between(1, 9)) b[i] = specials[i % 7];
}

void check_length(Checker& check, Random& random, int64_t n, Guard guard) {
  Buffer x(n, guard), z(n, guard), y(n, guard);
  sprinkle(random, x);
  random.fill(z);
  clamp(x.data(), n, 0.0f, 6.0f, y.data());
  for (int64_t i = 0; i < n; ++i) check.number(y[i], clamped(x[i], 0.0, 6.0), 0.0, "clamp");
  clamp(x.data(), n, 2.0f, -1.0f, y.data());
  for (int64_t i = 0; i < n; ++i) {
    check.number(y[i], clamped(x[i], 2.0, -1.0), 0.0, "clamp, low above high");
  }
  clamp(x.data(), n, kNan, 6.0f, y.data());
  for (int64_t i = 0; i < n; ++i) check.number(y[i], kNan, 0.0, "clamp to NaN");
  for (float alpha : {1.0f, -2.5f}) {
    add(x.data(), z.data(), alpha, n, y.data());
    for (int64_t i = 0; i < n; ++i) {
      Expected e;
      e.add(x[i]);
      e.add(static_cast<double>(alpha) * z[i]);
      check.number(y[i], e.value, std::isfinite(e.value) ? e.tolerance() : 0.0, "add");
    }
  }
  scale_shift(x.data(), n, 0.75f, -3.0f, y.data());
  for (int64_t i = 0; i < n; ++i) {
    Expected e;
    e.add(0.75 * x[i]);
    e.add(-3.0);
    check.number(y[i], e.value, std::isfinite(e.value) ? e.tolerance() : 0.0, "scale_shift");
  }
  Buffer copy(n, guard);
  for (int64_t i = 0; i < n; ++i) copy[i] = x[i];
  clamp(copy.data(), n, -1.0f, 1.0f, copy.data());
  for (int64_t i = 0; i < n; ++i) {
    check.number(copy[i], clamped(x[i], -1.0, 1.0), 0.0, "clamp in place");
  }
}

void check_means(Checker& check, Random& random, int64_t rows, int64_t cols, Guard guard) {
  Buffer x(rows * cols, guard), y(rows, guard);
  random.fill(x);
  mean_rows(x.data(), rows, cols, y.data());
  for (int64_t r = 0; r < rows; ++r) {
    Expected e;
    for (int64_t c = 0; c < cols; ++c) e.add(x[r * cols + c] / static_cast<double>(cols));
    e.terms += 1;
    check.number(y[r], cols == 0 ? kNan : e.value, e.tolerance(),
                 "mean of " + std::to_string(cols));
  }
}

}  // namespace

int test_elementwise() {
  Checker check;
  Random random(5);
  for (int64_t n :
       {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000}) {
    check_length(check, random, n, Guard::kEnd);
    check_length(check, random, n, Guard::kStart);
  }
  for (int64_t cols : {0, 1, 3, 4, 15, 16, 17, 32, 49, 64, 196, 1001}) {
    check_means(check, random, 5, cols, cols % 2 == 0 ? Guard::kEnd : Guard::kStart);
  }
  for (int64_t rows : {1, 3, 16, 17, 40}) {
    for (int64_t cols : {1, 2, 15, 16, 33}) {
      Buffer x(rows * cols, Guard::kEnd), y(rows * cols, Guard::kEnd);
      random.fill(x);
      transpose(x.data(), rows, cols, y.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          check.that(y[c * rows + r] == x[r * cols + c], "transpose");
        }
      }
    }
  }
  return check.result("elementwise");
}

}  // namespace k230::test
