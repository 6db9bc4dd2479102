#pragma once

#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena.h"
#include "tensor_spec.h"

namespace k230 {

/// One method of a program, loaded, with the memory that it was planned for.
class Model {
 public:
  /// Throws Failure: model (unreadable, no program, no such method), operators (with their names)
  /// or memory.
  Model(
      const std::string& path,
      const std::string& method_name,
      executorch::runtime::EventTracer* tracer);

  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }

  /// `data` must hold inputs()[index].nbytes bytes and stay valid until execute() has returned.
  executorch::runtime::Error set_input(std::size_t index, const void* data);

  executorch::runtime::Error execute();

  /// Bytes of the output after execute(); outputs()[index].nbytes of them.
  const void* output(std::size_t index) const;
  std::size_t output_nbytes(std::size_t index) const;
  executorch::runtime::EValue output_value(std::size_t index) const;

  double load_ms() const { return load_ms_; }

 private:
  struct InputTensor;

  void load(const std::string& method_name, executorch::runtime::EventTracer* tracer);
  void plan_memory(const executorch::runtime::MethodMeta& meta);
  void describe(const executorch::runtime::MethodMeta& meta);

  std::string path_;
  std::optional<executorch::extension::FileDataLoader> loader_;
  std::optional<executorch::runtime::Program> program_;
  Arena method_allocator_;
  Arena temp_allocator_;
  std::vector<std::unique_ptr<uint8_t[]>> buffers_;
  std::vector<executorch::runtime::Span<uint8_t>> spans_;
  std::optional<executorch::runtime::HierarchicalAllocator> planned_;
  std::optional<executorch::runtime::MemoryManager> memory_;
  std::optional<executorch::runtime::Method> method_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  std::vector<std::vector<uint8_t>> input_dim_orders_;
  std::vector<executorch::aten::ScalarType> input_types_;
  double load_ms_ = 0;
};

/// CRC-32 of the file's first 4096 bytes followed by its size as u64, as in the results header.
uint32_t model_fingerprint(const std::string& path);

}  // namespace k230
