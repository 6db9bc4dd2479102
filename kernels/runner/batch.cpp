#include "batch.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "clock.h"
#include "failure.h"
#include "frames.h"
#include "input_list.h"
#include "log.h"
#include "model.h"
#include "results_file.h"
#include "sample_reader.h"
#include "tracer.h"

namespace k230 {
namespace {

using executorch::runtime::Error;

constexpr uint64_t kFrameIntervalNs = 200'000'000;
constexpr uint64_t kSyncEvery = 16;  // records that a power cut may cost

uint32_t count_values(const Model& model) {
  std::size_t values = 0;
  for (const TensorSpec& spec : model.outputs()) {
    if (spec.type != ElementType::kFloat32) {
      throw Failure(FailCode::kModel, "an output is not float32: use --output_file for one inference");
    }
    values += spec.count;
  }
  return static_cast<uint32_t>(values);
}

void collect_outputs(const Model& model, std::vector<float>& values) {
  auto at = values.begin();
  for (std::size_t i = 0; i < model.outputs().size(); ++i) {
    const auto* data = static_cast<const float*>(model.output(i));
    const std::size_t count =
        std::min(model.output_nbytes(i) / sizeof(float), model.outputs()[i].count);
    std::copy(data, data + count, at);
    at += static_cast<std::ptrdiff_t>(model.outputs()[i].count);
  }
}

/// The middle latency; of an even number, the lower of the two in the middle.
uint64_t median(std::vector<uint64_t>& latencies) {
  const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>((latencies.size() - 1) / 2);
  std::nth_element(latencies.begin(), middle, latencies.end());
  return *middle;
}

class Batch {
 public:
  Batch(const Options& options, const InputList& list, Model& model, ResultsFile& results)
      : options_(options),
        model_(model),
        results_(results),
        reader_(list, model.inputs()[0]),
        values_(count_values(model)) {}

  Record infer(const Sample& sample) {
    const Clock::time_point start = Clock::now();
    Record record;
    record.id = sample.id;
    const SampleReader::Outcome outcome = reader_.read(sample);
    record.input_crc = reader_.crc();
    if (outcome == SampleReader::Outcome::kUnreadable) {
      record.status = kStatusUnreadable;
    } else if (outcome == SampleReader::Outcome::kCrcDiffers) {
      record.status = kStatusCrcDiffers;
    } else {
      execute(record);
    }
    results_.append(record, values_.data());
    if (options_.pace_ms > 0) {
      std::this_thread::sleep_until(
          start + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double, std::milli>(options_.pace_ms)));
    }
    return record;
  }

  void warm_up(const Sample& sample) {
    if (reader_.read(sample) != SampleReader::Outcome::kGood) {
      return;  // the sample itself will say so
    }
    for (uint32_t i = 0; i < options_.warmup; ++i) {
      Record unused;
      execute_once(unused);
    }
  }

 private:
  void execute(Record& record) {
    std::vector<uint64_t> latencies;
    for (uint32_t i = 0; i < options_.num_executions && record.status == 0; ++i) {
      latencies.push_back(execute_once(record));
    }
    if (record.status == 0) {
      record.executions = options_.num_executions;
      record.latency_ns = median(latencies);
      collect_outputs(model_, values_);
    }
  }

  uint64_t execute_once(Record& record) {
    const Clock::time_point start = Clock::now();
    Error error = model_.set_input(0, reader_.data());
    if (error == Error::Ok) {
      error = model_.execute();
    }
    record.status = static_cast<int32_t>(error);
    return ns_since(start);
  }

  const Options& options_;
  Model& model_;
  ResultsFile& results_;
  SampleReader reader_;
  std::vector<float> values_;
};

}  // namespace

unsigned long run_batch(const Options& options) {
  set_quiet(true);
  const auto tracer = make_tracer(options.etdump_path);
  const InputList list = read_input_list(options.inputs_list);
  Model model(options.model_path, options.method_name, tracer.get());
  if (model.inputs().size() != 1) {
    throw Failure(
        FailCode::kModel,
        "--inputs_list needs a model with one input, it has " +
            std::to_string(model.inputs().size()));
  }
  const RunIdentity identity{
      options.run_id, model_fingerprint(options.model_path), list.crc, count_values(model)};
  // Before the results file: a list that does not fit must not cost the results of another run.
  SampleReader(list, model.inputs()[0]);
  ResultsFile results(options.results_file, identity, options.resume);
  std::vector<Sample> open;
  std::copy_if(
      list.samples.begin(), list.samples.end(), std::back_inserter(open),
      [&](const Sample& sample) { return results.finished().count(sample.id) == 0; });
  const std::size_t resumed = list.samples.size() - open.size();
  emit(begin_frame(options.run_id, list.samples.size(), resumed));

  Batch batch(options, list, model, results);
  if (options.warmup > 0 && !open.empty()) {
    batch.warm_up(open.front());
    forget_trace(tracer.get());
  }
  unsigned long failed = 0;
  Clock::time_point last_frame = Clock::now();
  for (std::size_t i = 0; i < open.size(); ++i) {
    const uint64_t seq = results.records();
    const Record record = batch.infer(open[i]);
    failed += record.status != 0 ? 1 : 0;
    if (results.records() % kSyncEvery == 0) {
      results.sync();
    }
    if (i + 1 == open.size() || ns_since(last_frame) >= kFrameIntervalNs) {
      emit(item_frame(options.run_id, seq, record.id, record.status, to_ms(record.latency_ns)));
      last_frame = Clock::now();
    }
  }
  results.sync();
  write_trace(tracer.get(), options.etdump_path);
  emit(end_frame(
      options.run_id, list.samples.size() - failed, failed, results.records(), model.load_ms()));
  return failed;
}

}  // namespace k230
