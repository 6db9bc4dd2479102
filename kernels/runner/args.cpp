#include "args.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "failure.h"

namespace k230 {
namespace {

constexpr std::size_t kRunIdMax = 32;  // bytes kept for it in the results header

[[noreturn]] void refuse(const std::string& reason) { throw Failure(FailCode::kUsage, reason); }

uint32_t to_count(const std::string& flag, const std::string& text, uint32_t least) {
  errno = 0;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 10);
  const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0';
  if (!digits || errno != 0 || value < least || value > UINT32_MAX) {
    refuse("--" + flag + " expects a whole number from " + std::to_string(least) + ", found '" +
           text + "'");
  }
  return static_cast<uint32_t>(value);
}

double to_milliseconds(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0) {
    refuse("--" + flag + " expects milliseconds, found '" + text + "'");
  }
  return value;
}

bool to_bool(const std::string& flag, const std::string& text) {
  if (text.empty() || text == "true" || text == "1") {
    return true;
  }
  if (text == "false" || text == "0") {
    return false;
  }
  refuse("--" + flag + " expects true or false, found '" + text + "'");
}

PrintOutput to_print_output(const std::string& text) {
  if (text == "none") {
    return PrintOutput::kNone;
  }
  if (text == "summary") {
    return PrintOutput::kSummary;
  }
  if (text == "all") {
    return PrintOutput::kAll;
  }
  refuse("--print_output expects none, summary or all, found '" + text + "'");
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start) {
      parts.push_back(text.substr(start, comma - start));
    }
    start = comma + 1;
  }
  return parts;
}

std::string to_run_id(const std::string& text) {
  const bool known = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                     std::string::npos;
  if (text.empty() || text.size() > kRunIdMax || !known) {
    refuse("--run_id expects 1 to 32 letters, digits, '.', '_' or '-'");
  }
  return text;
}

struct Flag {
  bool is_switch;
  std::function<void(const std::string&)> set;
};

std::map<std::string, Flag> flags_of(Options& o) {
  const auto text = [](std::string& target) {
    return Flag{false, [&target](const std::string& value) { target = value; }};
  };
  const auto toggle = [](const char* name, bool& target) {
    return Flag{true, [name, &target](const std::string& v) { target = to_bool(name, v); }};
  };
  return {
      {"model_path", text(o.model_path)},
      {"method_name", text(o.method_name)},
      {"etdump_path", text(o.etdump_path)},
      {"output_file", text(o.output_file)},
      {"inputs_list", text(o.inputs_list)},
      {"results_file", text(o.results_file)},
      {"inputs", {false, [&o](const std::string& v) { o.inputs = split_at_commas(v); }}},
      {"run_id", {false, [&o](const std::string& v) { o.run_id = to_run_id(v); }}},
      {"print_output", {false, [&o](const std::string& v) { o.print_output = to_print_output(v); }}},
      {"num_executions",
       {false, [&o](const std::string& v) { o.num_executions = to_count("num_executions", v, 1); }}},
      {"warmup", {false, [&o](const std::string& v) { o.warmup = to_count("warmup", v, 0); }}},
      {"pace_ms", {false, [&o](const std::string& v) { o.pace_ms = to_milliseconds("pace_ms", v); }}},
      {"resume", toggle("resume", o.resume)},
      {"help", toggle("help", o.help)},
      {"manifest", toggle("manifest", o.manifest)},
      {"list_operators", toggle("list_operators", o.list_operators)},
  };
}

void check_combination(const Options& o) {
  if (o.help || o.manifest || o.list_operators) {
    return;
  }
  if (o.inputs_list.empty()) {
    if (!o.results_file.empty() || !o.run_id.empty() || o.resume || o.pace_ms > 0) {
      refuse("--results_file, --run_id, --resume and --pace_ms need --inputs_list");
    }
    return;
  }
  if (o.results_file.empty() || o.run_id.empty()) {
    refuse("--inputs_list needs --results_file and --run_id");
  }
  if (!o.inputs.empty() || !o.output_file.empty()) {
    refuse("--inputs_list cannot be combined with --inputs or --output_file");
  }
}

}  // namespace

Options parse_args(int argc, const char* const* argv) {
  Options options;
  const std::map<std::string, Flag> flags = flags_of(options);
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (word[0] != '-' || word[1] == '\0') {
      refuse(std::string("unexpected argument '") + word + "'");
    }
    word += word[1] == '-' ? 2 : 1;
    const char* equals = std::strchr(word, '=');
    const std::string name = equals != nullptr ? std::string(word, equals) : std::string(word);
    const auto found = flags.find(name);
    if (found == flags.end()) {
      refuse("unknown flag --" + name);
    }
    if (equals != nullptr) {
      found->second.set(equals + 1);
    } else if (found->second.is_switch) {
      found->second.set("");
    } else if (i + 1 < argc) {
      found->second.set(argv[++i]);
    } else {
      refuse("--" + name + " needs a value");
    }
  }
  check_combination(options);
  return options;
}

const char* usage() {
  return "k230_runner: runs an ExecuTorch program\n"
         "\n"
         "One inference, as executor_runner does:\n"
         "  --model_path FILE       the program (model.pte)\n"
         "  --inputs A[,B]          raw little-endian tensors; without it inputs are ones\n"
         "  --output_file PREFIX    writes PREFIX-0.bin, one file for each output\n"
         "  --print_output HOW      none, summary or all (summary)\n"
         "  --num_executions N      repeats (1)\n"
         "  --warmup N              runs before that are neither timed nor traced (0)\n"
         "  --method_name NAME      (forward)\n"
         "  --etdump_path FILE      writes the trace\n"
         "\n"
         "Many inferences, one model load:\n"
         "  --inputs_list LIST      index of packed samples\n"
         "  --results_file FILE     one record for each sample, appended\n"
         "  --run_id ID             name in frames and results header\n"
         "  --resume                goes on after the last good record of the same run\n"
         "  --pace_ms T             each sample takes at least T milliseconds (0)\n"
         "\n"
         "About the runner:\n"
         "  --manifest              what it was built from, as JSON\n"
         "  --list_operators        every registered kernel: operator, tab, key or 'fallback'\n"
         "  --help\n";
}

}  // namespace k230
