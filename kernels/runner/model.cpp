#include "model.h"

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "clock.h"
#include "crc.h"
#include "failure.h"
#include "file_bytes.h"
#include "log.h"

namespace k230 {
namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Tag;
using executorch::runtime::TensorInfo;

constexpr std::size_t kFingerprintBytes = 4096;
constexpr const char* kMissingOperator = "Missing operator: ";

std::string hex(Error error) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", static_cast<unsigned>(error));
  return text;
}

/// The operator names in "Missing operator: [7] aten::foo.out" lines, each once, comma-separated.
std::string missing_operators(const std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const std::string& line : errors) {
    const std::size_t at = line.find(kMissingOperator);
    if (at == std::string::npos) {
      continue;
    }
    std::string name = line.substr(at + std::strlen(kMissingOperator));
    const std::size_t blank = name.rfind(' ');
    name = blank == std::string::npos ? name : name.substr(blank + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  std::string joined;
  for (const std::string& name : names) {
    joined += (joined.empty() ? "" : ",") + name;
  }
  return joined;
}

[[noreturn]] void give_up(const std::string& what, Error error) {
  const std::vector<std::string> errors = take_errors();
  if (error == Error::OperatorMissing) {
    throw Failure(FailCode::kOperators, "missing " + missing_operators(errors));
  }
  const FailCode code =
      error == Error::MemoryAllocationFailed ? FailCode::kMemory : FailCode::kModel;
  throw Failure(
      code, what + " (" + hex(error) + ")" + (errors.empty() ? "" : ": " + errors.back()));
}

TensorSpec spec_of(const TensorInfo& info) {
  TensorSpec spec;
  spec.sizes.assign(info.sizes().begin(), info.sizes().end());
  spec.type =
      info.scalar_type() == ScalarType::Float ? ElementType::kFloat32 : ElementType::kOther;
  spec.count = 1;
  for (const int32_t size : spec.sizes) {
    spec.count *= static_cast<std::size_t>(size);
  }
  spec.nbytes = info.nbytes();
  return spec;
}

}  // namespace

Model::Model(
    const std::string& path,
    const std::string& method_name,
    executorch::runtime::EventTracer* tracer)
    : path_(path) {
  // The loader only says that it failed, not why.
  if (!FileHandle(::open(path.c_str(), O_RDONLY))) {
    throw Failure(FailCode::kModel, "cannot read " + path + ": " + std::strerror(errno));
  }
  const Clock::time_point start = Clock::now();
  load(method_name, tracer);
  load_ms_ = to_ms(ns_since(start));
}

void Model::load(const std::string& method_name, executorch::runtime::EventTracer* tracer) {
  auto loader = executorch::extension::FileDataLoader::from(path_.c_str());
  if (!loader.ok()) {
    give_up("cannot read " + path_, loader.error());
  }
  loader_.emplace(std::move(loader.get()));
  Result<Program> program = Program::load(&loader_.value());
  if (!program.ok()) {
    give_up(path_ + " is no ExecuTorch program that this runtime can load", program.error());
  }
  program_.emplace(std::move(program.get()));
  const Result<MethodMeta> meta = program_->method_meta(method_name.c_str());
  if (!meta.ok()) {
    give_up(path_ + " has no method " + method_name, meta.error());
  }
  describe(meta.get());
  plan_memory(meta.get());
  Result<executorch::runtime::Method> method =
      program_->load_method(method_name.c_str(), &memory_.value(), tracer);
  if (!method.ok()) {
    give_up("cannot load method " + method_name + " of " + path_, method.error());
  }
  method_.emplace(std::move(method.get()));
}

void Model::plan_memory(const MethodMeta& meta) {
  for (std::size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    const Result<int64_t> size = meta.memory_planned_buffer_size(i);
    if (!size.ok() || size.get() < 0) {
      give_up(path_ + " has no usable memory plan", Error::InvalidProgram);
    }
    const auto bytes = static_cast<std::size_t>(size.get());
    log_info("Setting up planned buffer %zu, size %zu.", i, bytes);
    buffers_.emplace_back(new (std::nothrow) uint8_t[bytes]);
    if (buffers_.back() == nullptr) {
      throw Failure(
          FailCode::kMemory,
          "planned buffer " + std::to_string(i) + " needs " + std::to_string(bytes) + " bytes");
    }
    spans_.emplace_back(buffers_.back().get(), bytes);
  }
  planned_.emplace(
      executorch::runtime::Span<executorch::runtime::Span<uint8_t>>(spans_.data(), spans_.size()));
  memory_.emplace(&method_allocator_, &planned_.value(), &temp_allocator_);
}

void Model::describe(const MethodMeta& meta) {
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    const Result<TensorInfo> info = meta.input_tensor_meta(i);
    if (!info.ok()) {
      give_up("input " + std::to_string(i) + " of " + path_ + " is no tensor", info.error());
    }
    inputs_.push_back(spec_of(info.get()));
    input_types_.push_back(info->scalar_type());
    input_dim_orders_.emplace_back(info->dim_order().begin(), info->dim_order().end());
  }
  for (std::size_t i = 0; i < meta.num_outputs(); ++i) {
    const Result<TensorInfo> info = meta.output_tensor_meta(i);
    if (!info.ok()) {
      give_up("output " + std::to_string(i) + " of " + path_ + " is no tensor", info.error());
    }
    outputs_.push_back(spec_of(info.get()));
  }
}

Error Model::set_input(std::size_t index, const void* data) {
  TensorSpec& spec = inputs_[index];
  std::vector<uint8_t>& dim_order = input_dim_orders_[index];
  std::vector<TensorImpl::StridesType> strides(spec.sizes.size());
  executorch::runtime::dim_order_to_stride_nocheck(
      spec.sizes.data(), dim_order.data(), spec.sizes.size(), strides.data());
  // The runtime takes over data pointer or bytes, not the description, so this may live here.
  TensorImpl tensor(
      input_types_[index], static_cast<ssize_t>(spec.sizes.size()), spec.sizes.data(),
      const_cast<void*>(data), dim_order.data(), strides.data());
  return method_->set_input(EValue(Tensor(&tensor)), index);
}

Error Model::execute() { return method_->execute(); }

EValue Model::output_value(std::size_t index) const { return method_->get_output(index); }

const void* Model::output(std::size_t index) const {
  return method_->get_output(index).toTensor().const_data_ptr();
}

std::size_t Model::output_nbytes(std::size_t index) const {
  return method_->get_output(index).toTensor().nbytes();
}

uint32_t model_fingerprint(const std::string& path) {
  const FileHandle file(::open(path.c_str(), O_RDONLY));
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
  if (size < 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    throw Failure(FailCode::kModel, "cannot read " + path + ": " + std::strerror(errno));
  }
  std::vector<uint8_t> head(std::min(static_cast<std::size_t>(size), kFingerprintBytes));
  if (!read_exactly(file.get(), head.data(), head.size())) {
    throw Failure(FailCode::kModel, "cannot read " + path + ": " + std::strerror(errno));
  }
  const uint64_t bytes = static_cast<uint64_t>(size);
  return crc32(&bytes, sizeof bytes, crc32(head.data(), head.size()));
}

}  // namespace k230
