#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace k230 {

enum class PrintOutput { kNone, kSummary, kAll };

struct Options {
  std::string model_path = "model.pte";
  std::string method_name = "forward";
  std::string etdump_path;
  uint32_t num_executions = 1;
  uint32_t warmup = 0;

  // one inference
  std::vector<std::string> inputs;
  std::string output_file;
  PrintOutput print_output = PrintOutput::kSummary;

  // many inferences
  std::string inputs_list;
  std::string results_file;
  std::string run_id;
  bool resume = false;
  double pace_ms = 0;

  // questions to the runner itself
  bool help = false;
  bool manifest = false;
  bool list_operators = false;
};

/// Reads `--flag=value`, `--flag value` and `--switch`; one dash does as well.
/// Throws Failure (usage) for an unknown flag, a missing or bad value or a wrong combination.
Options parse_args(int argc, const char* const* argv);

const char* usage();

}  // namespace k230
