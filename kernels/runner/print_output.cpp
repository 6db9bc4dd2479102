#include "print_output.h"

#include <cstdio>

namespace k230 {
namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;

constexpr std::size_t kEdge = 100;
constexpr std::size_t kPerLine = 10;

double value_at(const Tensor& tensor, std::size_t i) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return static_cast<double>(tensor.const_data_ptr<float>()[i]);
    case ScalarType::Double:
      return tensor.const_data_ptr<double>()[i];
    case ScalarType::Int:
      return tensor.const_data_ptr<int32_t>()[i];
    case ScalarType::Long:
      return static_cast<double>(tensor.const_data_ptr<int64_t>()[i]);
    default:
      return tensor.const_data_ptr<uint8_t>()[i];
  }
}

void print_all(std::size_t index, const Tensor& tensor) {
  const bool is_float = tensor.scalar_type() == ScalarType::Float;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.numel()); ++i) {
    std::printf(
        "Output[%zu][%zu]: (%s) %f\n", index, i, is_float ? "float" : "other",
        value_at(tensor, i));
  }
}

void print_range(const Tensor& tensor, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    const bool ends_line = (i - from) % kPerLine == kPerLine - 1 || i + 1 == to;
    std::printf(
        "%s%g,%s", (i - from) % kPerLine == 0 ? "  " : " ", value_at(tensor, i),
        ends_line ? "\n" : "");
  }
}

void print_summary(std::size_t index, const Tensor& tensor) {
  std::printf("OutputX %zu: tensor(sizes=[", index);
  for (ssize_t i = 0; i < tensor.dim(); ++i) {
    std::printf("%s%zd", i > 0 ? ", " : "", static_cast<ssize_t>(tensor.size(i)));
  }
  std::printf("], [\n");
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (count <= 2 * kEdge) {
    print_range(tensor, 0, count);
  } else {
    print_range(tensor, 0, kEdge);
    std::printf("  ...,\n");
    print_range(tensor, count - kEdge, count);
  }
  std::printf("])\n");
}

}  // namespace

void print_outputs(const Model& model, PrintOutput how) {
  for (std::size_t i = 0; i < model.outputs().size() && how != PrintOutput::kNone; ++i) {
    const executorch::runtime::EValue value = model.output_value(i);
    if (how == PrintOutput::kAll) {
      print_all(i, value.toTensor());
    } else {
      print_summary(i, value.toTensor());
    }
  }
  std::fflush(stdout);
}

}  // namespace k230
