// Runs MobileNetV2's layers with random weights and prints one line per layer:
//   op <index> <kind> <name> <macs> <elements> <nanoseconds> <sum of outputs> <largest output>
// k230_bench_mark() is called before each layer and after the last: an instrumented emulator cuts
// its counts there. Everything is computed from a fixed seed, so the numbers can be compared.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "k230/cpu.h"
#include "k230/elementwise.h"
#include "k230/gemm.h"
#include "mobilenet_v2.h"
#include "variants.h"

extern "C" __attribute__((noinline)) void k230_bench_mark() { __asm__ volatile("" ::: "memory"); }

namespace k230::bench {
namespace {

enum class Variant { kOurs, kNaive, kPortable };

struct Options {
  Variant variant = Variant::kOurs;
  bool fused = true;
  int repeats = 1;
};

class Random {  // the same numbers on every machine
 public:
  float uniform(float scale) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const auto bits = static_cast<float>(state_ >> 40) / 16777216.0f;
    return (2.0f * bits - 1.0f) * scale;
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

const char* kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::kConv: return "conv";
    case OpKind::kHardtanh: return "hardtanh";
    case OpKind::kAdd: return "add";
    case OpKind::kMean: return "mean";
    case OpKind::kLinear: return "linear";
  }
  return "?";
}

struct Memory {
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;
  std::vector<unsigned char> scratch;
};

void fill_weights(const Network& net, Memory& memory) {
  Random random;
  memory.weights.assign(net.weights, 0.0f);
  std::size_t scratch = 0;
  for (const Op& op : net.ops) {
    if (op.kind != OpKind::kConv && op.kind != OpKind::kLinear) continue;
    const bool conv = op.kind == OpKind::kConv;
    const auto fan_in = static_cast<float>(op.macs() / op.count);
    const std::size_t count = conv ? static_cast<std::size_t>(op.conv.out_channels * fan_in)
                                   : static_cast<std::size_t>(op.k * op.count);
    for (std::size_t i = 0; i < count; ++i) {
      memory.weights[op.weight + i] = random.uniform(std::sqrt(6.0f / fan_in));
    }
    const auto biases = static_cast<std::size_t>(conv ? op.conv.out_channels : op.count);
    for (std::size_t i = 0; i < biases; ++i) memory.weights[op.bias + i] = random.uniform(0.1f);
    if (conv) scratch = std::max(scratch, conv2d_scratch_bytes(op.conv));
  }
  memory.slots.assign(static_cast<std::size_t>(net.slots),
                      std::vector<float>(static_cast<std::size_t>(net.slot_floats)));
  for (float& v : memory.slots[0]) v = random.uniform(2.0f);
  memory.scratch.resize(scratch);
}

bool run_op(const Op& op, Memory& m, const Options& o) {
  const float* x = m.slots[static_cast<std::size_t>(op.in)].data();
  float* y = m.slots[static_cast<std::size_t>(op.out)].data();
  const float* w = m.weights.data() + op.weight;
  const float* bias = m.weights.data() + op.bias;
  switch (op.kind) {
    case OpKind::kConv: {
      const Clamp clamp = op.relu6 && o.fused ? Clamp{0.0f, 6.0f} : Clamp{};
      if (o.variant == Variant::kOurs) {
        conv2d(op.conv, x, w, bias, clamp, y, m.scratch.data());
      } else if (o.variant == Variant::kPortable) {
        conv2d_portable_shape(op.conv, x, w, bias, y);
      } else {
#ifdef K230_KERNELS_RVV
        conv2d_naive_rvv(op.conv, x, w, bias, y);
#else
        return false;
#endif
      }
      return true;
    }
    case OpKind::kHardtanh:
      k230::clamp(x, op.count, 0.0f, 6.0f, y);
      return true;
    case OpKind::kAdd:
      k230::add(x, m.slots[static_cast<std::size_t>(op.in2)].data(), 1.0f, op.count, y);
      return true;
    case OpKind::kMean:
      mean_rows(x, op.count, op.k, y);
      return true;
    case OpKind::kLinear: {
      Addmm shape;
      shape.m = 1;
      shape.n = op.count;
      shape.k = op.k;
      shape.c_col = 1;
      addmm(shape, x, w, bias, y);
      return true;
    }
  }
  return false;
}

int run(const Options& o) {
  const Network net = mobilenet_v2(o.fused);
  Memory memory;
  fill_weights(net, memory);
  const std::vector<float> input = memory.slots[0];
  std::vector<int64_t> best(net.ops.size(), INT64_MAX);
  std::vector<double> sums(net.ops.size());
  std::vector<float> tops(net.ops.size());
  for (int repeat = 0; repeat < o.repeats; ++repeat) {
    memory.slots[0] = input;
    for (std::size_t i = 0; i < net.ops.size(); ++i) {
      const Op& op = net.ops[i];
      k230_bench_mark();
      const auto begin = std::chrono::steady_clock::now();
      if (!run_op(op, memory, o)) return 2;
      const auto end = std::chrono::steady_clock::now();
      k230_bench_mark();
      best[i] = std::min<int64_t>(
          best[i], std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
      if (repeat > 0) continue;
      const float* y = memory.slots[static_cast<std::size_t>(op.out)].data();
      sums[i] = 0.0;
      for (int64_t j = 0; j < op.count; ++j) sums[i] += y[j];
      tops[i] = *std::max_element(y, y + op.count);
    }
  }
  for (std::size_t i = 0; i < net.ops.size(); ++i) {
    const Op& op = net.ops[i];
    std::printf("op %zu %s %s %lld %lld %lld %.6e %.6e\n", i, kind_name(op.kind), op.name.c_str(),
                static_cast<long long>(op.macs()), static_cast<long long>(op.count),
                static_cast<long long>(best[i]), sums[i], static_cast<double>(tops[i]));
  }
  return 0;
}

int usage() {
  std::fputs("usage: k230_bench [--variant ours|naive|portable] [--clamp fused|separate] "
             "[--isa rvv|scalar] [--repeats N]\n", stderr);
  return 1;
}

}  // namespace
}  // namespace k230::bench

int main(int argc, char** argv) {
  using k230::bench::Variant;
  k230::bench::Options o;
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value == nullptr) return k230::bench::usage();
    if (std::strcmp(argv[i], "--variant") == 0) {
      if (std::strcmp(value, "naive") == 0) o.variant = Variant::kNaive;
      else if (std::strcmp(value, "portable") == 0) o.variant = Variant::kPortable;
      else if (std::strcmp(value, "ours") != 0) return k230::bench::usage();
    } else if (std::strcmp(argv[i], "--clamp") == 0) {
      if (std::strcmp(value, "separate") == 0) o.fused = false;
      else if (std::strcmp(value, "fused") != 0) return k230::bench::usage();
    } else if (std::strcmp(argv[i], "--repeats") == 0) {
      o.repeats = std::atoi(value);
      if (o.repeats < 1) return k230::bench::usage();
    } else if (std::strcmp(argv[i], "--isa") == 0) {
      const bool rvv = std::strcmp(value, "rvv") == 0;
      if (!rvv && std::strcmp(value, "scalar") != 0) return k230::bench::usage();
      if (!k230::select_isa(rvv ? k230::Isa::kRvv : k230::Isa::kScalar)) {
        std::fprintf(stderr, "k230_bench: %s\n", k230::inspect_cpu().reason);
        return 2;
      }
    } else {
      return k230::bench::usage();
    }
  }
  // naive and portable write no clamp: give them the graph with hardtanh calls
  if (o.variant != Variant::kOurs) o.fused = false;
  const k230::CpuReport cpu = k230::inspect_cpu();
  std::printf("k230_bench 1 isa=%s vlen=%u repeats=%d\n",
              k230::active_isa() == k230::Isa::kRvv ? "rvv" : "scalar", cpu.vlen_bits, o.repeats);
  return k230::bench::run(o);
}
