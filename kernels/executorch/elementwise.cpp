#include "k230/elementwise.h"

#include <limits>

#include "common.h"

namespace k230::et {
namespace {

using executorch::aten::SizesType;

// Same sizes, same order in memory: element i of one belongs to element i of the other.
bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (decltype(a.dim()) i = 0; i < a.dim(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (a.size(i) != b.size(i) || a.dim_order()[at] != b.dim_order()[at]) return false;
  }
  return true;
}

// Steps a multi-dimensional index with broadcasting operands.
class Broadcast {
 public:
  Broadcast(const Tensor& a, const Tensor& b, const Tensor& out)
      : rank_(static_cast<int>(out.dim())) {
    for (int i = 0; i < rank_; ++i) {
      sizes_[i] = out.size(i);
      strides_[i][0] = stride_of(a, i);
      strides_[i][1] = stride_of(b, i);
      strides_[i][2] = out.strides()[static_cast<size_t>(i)];
    }
  }

  template <class Body>
  void each(Body body) const {
    int64_t total = 1;
    for (int i = 0; i < rank_; ++i) total *= sizes_[i];
    int64_t index[kMaxRank] = {};
    for (int64_t n = 0; n < total; ++n) {
      int64_t at[3] = {};
      for (int i = 0; i < rank_; ++i) {
        for (int o = 0; o < 3; ++o) at[o] += index[i] * strides_[i][o];
      }
      body(at[0], at[1], at[2]);
      for (int i = rank_ - 1; i >= 0; --i) {
        if (++index[i] < sizes_[i]) break;
        index[i] = 0;
      }
    }
  }

 private:
  int64_t stride_of(const Tensor& t, int out_dim) const {
    const int dim = out_dim - (rank_ - static_cast<int>(t.dim()));
    if (dim < 0 || t.size(dim) == 1) return 0;
    return t.strides()[static_cast<size_t>(dim)];
  }

  int rank_;
  int64_t sizes_[kMaxRank] = {};
  int64_t strides_[kMaxRank][3] = {};
};

// The sizes both broadcast to; false when they do not.
bool broadcast_sizes(const Tensor& a, const Tensor& b, SizesType* sizes, int& rank) {
  const int ra = static_cast<int>(a.dim());
  const int rb = static_cast<int>(b.dim());
  rank = ra > rb ? ra : rb;
  if (rank > kMaxRank) return false;
  for (int i = 0; i < rank; ++i) {
    const int da = i - (rank - ra);
    const int db = i - (rank - rb);
    const auto sa = static_cast<SizesType>(da < 0 ? 1 : a.size(da));
    const auto sb = static_cast<SizesType>(db < 0 ? 1 : b.size(db));
    if (sa != sb && sa != 1 && sb != 1) return false;
    sizes[i] = sa == 1 ? sb : sa;
  }
  return true;
}

Tensor& run_clamp(KernelRuntimeContext& ctx, const char* name, const Tensor& in, double low,
                  double high, Tensor& out) {
  K230_REQUIRE(ctx, is_float(in) && is_float(out), out, "%s: tensors must be float32", name);
  K230_REQUIRE(ctx, resize(out, in.sizes().data(), static_cast<int>(in.dim())), out,
               "%s: the output cannot hold the result", name);
  const auto l = static_cast<float>(low);
  const auto h = static_cast<float>(high);
  float* y = out.mutable_data_ptr<float>();
  const float* x = data_of(in);
  if (same_layout(in, out)) {
    clamp(x, in.numel(), l, h, y);
  } else {
    Broadcast(in, in, out).each(
        [&](int64_t from, int64_t, int64_t to) { clamp(x + from, 1, l, h, y + to); });
  }
  return out;
}

}  // namespace

Tensor& hardtanh_out(KernelRuntimeContext& ctx, const Tensor& in, const Scalar& low,
                     const Scalar& high, Tensor& out) {
  return run_clamp(ctx, "hardtanh", in, number(low), number(high), out);
}

Tensor& clamp_out(KernelRuntimeContext& ctx, const Tensor& in, const Optional<Scalar>& low,
                  const Optional<Scalar>& high, Tensor& out) {
  K230_REQUIRE(ctx, low.has_value() || high.has_value(), out,
               "clamp: at least one bound must be given");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return run_clamp(ctx, "clamp", in, low.has_value() ? number(*low) : -kInfinity,
                   high.has_value() ? number(*high) : kInfinity, out);
}

Tensor& add_out(KernelRuntimeContext& ctx, const Tensor& a, const Tensor& b, const Scalar& alpha,
                Tensor& out) {
  K230_REQUIRE(ctx, is_float(a) && is_float(b) && is_float(out), out,
               "add: tensors must be float32");
  SizesType sizes[kMaxRank];
  int rank = 0;
  K230_REQUIRE(ctx, broadcast_sizes(a, b, sizes, rank), out,
               "add: the sizes of the operands do not broadcast");
  K230_REQUIRE(ctx, resize(out, sizes, rank), out, "add: the output cannot hold the result");
  const auto scale = static_cast<float>(number(alpha));
  const float* p = data_of(a);
  const float* q = data_of(b);
  float* y = out.mutable_data_ptr<float>();
  if (same_layout(a, b) && same_layout(a, out)) {
    add(p, q, scale, out.numel(), y);
  } else {
    Broadcast(a, b, out).each(
        [&](int64_t i, int64_t j, int64_t to) { y[to] = p[i] + scale * q[j]; });
  }
  return out;
}

}  // namespace k230::et
