// addmm and linear against float64.
#include "k230/gemm.h"
#include "support.h"

namespace k230::test {
namespace {

void check_addmm(Checker& check, Random& random, const Addmm& s, Guard guard) {
  Buffer a(s.m * s.k, guard), b(s.k * s.n, guard), y(s.m * s.n, guard);
  Buffer c(s.c_row != 0 ? s.m * s.n : s.n, guard);
  random.fill(a);
  random.fill(b);
  random.fill(c);
  addmm(s, a.data(), b.data(), s.beta != 0.0f ? c.data() : nullptr, y.data());
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      Expected e;
      for (int64_t k = 0; k < s.k; ++k) {
        e.add(static_cast<double>(s.alpha) * a[i * s.k + k] * b[k * s.n + j]);
      }
      if (s.beta != 0.0f) e.add(static_cast<double>(s.beta) * c[i * s.c_row + j * s.c_col]);
      e.terms += 2;  // the two scalings
      check.number(y[i * s.n + j], e,
                   "addmm " + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" +
                       std::to_string(s.n));
    }
  }
}

void check_linear(Checker& check, Random& random, int64_t m, int64_t n, int64_t k, bool with_bias,
                  Guard guard) {
  Buffer x(m * k, guard), w(n * k, guard), bias(n, guard), y(m * n, guard);
  random.fill(x);
  random.fill(w);
  random.fill(bias);
  linear(m, n, k, x.data(), w.data(), with_bias ? bias.data() : nullptr, y.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Expected e;
      for (int64_t q = 0; q < k; ++q) e.add(static_cast<double>(x[i * k + q]) * w[j * k + q]);
      if (with_bias) e.add(bias[j]);
      check.number(y[i * n + j], e,
                   "linear " + std::to_string(m) + "x" + std::to_string(k) + "x" +
                       std::to_string(n));
    }
  }
}

}  // namespace

int test_dense(bool extended) {
  Checker check;
  Random random(4);
  const int rounds = extended ? 600 : 80;
  for (int i = 0; i < rounds; ++i) {
    Addmm s;
    s.m = random.between(0, 3) == 0 ? random.between(2, 14) : 1;
    s.n = random.between(1, 90);
    s.k = random.between(0, 70);
    s.alpha = i % 4 == 0 ? 0.5f : 1.0f;
    s.beta = i % 5 == 0 ? 0.0f : i % 5 == 1 ? -2.0f : 1.0f;
    s.c_col = i % 7 == 0 ? 0 : 1;
    s.c_row = i % 3 == 0 && s.c_col == 1 ? s.n : 0;
    check_addmm(check, random, s, i % 2 == 0 ? Guard::kEnd : Guard::kStart);
    check_linear(check, random, random.between(1, 3), random.between(1, 40), random.between(0, 150),
                 i % 2 == 0, i % 2 == 0 ? Guard::kEnd : Guard::kStart);
  }
  Addmm classifier;
  classifier.m = 1;
  classifier.n = 1000;
  classifier.k = extended ? 1280 : 320;
  classifier.c_col = 1;
  check_addmm(check, random, classifier, Guard::kEnd);
  Addmm wide;
  wide.m = 9;
  wide.n = 300;
  wide.k = 211;
  wide.c_col = 1;
  check_addmm(check, random, wide, Guard::kEnd);
  return check.result("dense");
}

}  // namespace k230::test
