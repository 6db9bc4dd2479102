#include "single.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "clock.h"
#include "failure.h"
#include "file_bytes.h"
#include "log.h"
#include "model.h"
#include "print_output.h"
#include "tracer.h"

namespace k230 {
namespace {

using executorch::runtime::Error;

std::vector<std::string> read_inputs(const std::vector<std::string>& paths) {
  std::vector<std::string> inputs(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!read_whole(paths[i], inputs[i])) {
      throw Failure(FailCode::kUsage, "cannot read " + paths[i] + ": " + std::strerror(errno));
    }
  }
  return inputs;
}

/// Without files every input is ones, as executor_runner does.
std::vector<std::string> inputs_of_ones(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> inputs;
  for (const TensorSpec& spec : specs) {
    std::string bytes(spec.nbytes, '\1');
    if (spec.type == ElementType::kFloat32) {
      const std::vector<float> ones(spec.count, 1.0f);
      std::memcpy(bytes.data(), ones.data(), bytes.size());
    }
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

void check_inputs(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& inputs,
    const std::vector<TensorSpec>& specs) {
  if (inputs.size() != specs.size()) {
    throw Failure(
        FailCode::kUsage, "the model has " + std::to_string(specs.size()) + " inputs, --inputs " +
                              std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (inputs[i].size() != specs[i].nbytes) {
      throw Failure(
          FailCode::kUsage, paths[i] + " has " + std::to_string(inputs[i].size()) +
                                " bytes, the model's input needs " +
                                std::to_string(specs[i].nbytes));
    }
  }
}

void execute_once(Model& model, const std::vector<std::string>& inputs) {
  Error error = Error::Ok;
  for (std::size_t i = 0; i < inputs.size() && error == Error::Ok; ++i) {
    error = model.set_input(i, inputs[i].data());
  }
  if (error == Error::Ok) {
    error = model.execute();
  }
  if (error != Error::Ok) {
    const std::vector<std::string> errors = take_errors();
    throw Failure(
        error == Error::MemoryAllocationFailed ? FailCode::kMemory : FailCode::kModel,
        "the inference failed with error " + std::to_string(static_cast<unsigned>(error)) +
            (errors.empty() ? "" : ": " + errors.back()));
  }
}

void write_outputs(const Model& model, const std::string& prefix) {
  for (std::size_t i = 0; i < model.outputs().size(); ++i) {
    const std::string path = prefix + "-" + std::to_string(i) + ".bin";
    log_info("Writing output to file: %s", path.c_str());
    if (!write_whole(path, model.output(i), model.output_nbytes(i))) {
      throw Failure(FailCode::kResults, "cannot write " + path + ": " + std::strerror(errno));
    }
  }
}

}  // namespace

void run_single(const Options& options) {
  const auto tracer = make_tracer(options.etdump_path);
  std::vector<std::string> inputs = read_inputs(options.inputs);
  Model model(options.model_path, options.method_name, tracer.get());
  log_info("Model file %s is loaded.", options.model_path.c_str());
  log_info("Model loaded in %f ms.", model.load_ms());
  if (options.inputs.empty()) {
    inputs = inputs_of_ones(model.inputs());
  }
  check_inputs(options.inputs, inputs, model.inputs());
  for (uint32_t i = 0; i < options.warmup; ++i) {
    execute_once(model, inputs);
  }
  if (options.warmup > 0) {
    forget_trace(tracer.get());
  }
  double total_ms = 0;
  for (uint32_t i = 1; i <= options.num_executions; ++i) {
    const Clock::time_point start = Clock::now();
    execute_once(model, inputs);
    const double ms = to_ms(ns_since(start));
    total_ms += ms;
    log_info("Iteration %" PRIu32 " of %" PRIu32 ": %f ms", i, options.num_executions, ms);
  }
  log_info(
      "Model executed successfully %" PRIu32 " time(s) in %f ms.", options.num_executions,
      total_ms);
  print_outputs(model, options.print_output);
  if (!options.output_file.empty()) {
    write_outputs(model, options.output_file);
  }
  write_trace(tracer.get(), options.etdump_path);
}

}  // namespace k230
