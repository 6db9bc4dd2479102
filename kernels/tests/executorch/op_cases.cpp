// Calls operators as the runtime does: the kernel is looked up by the tensors of the call.
//
// op_cases CASES BLOB RESULTS
//
// CASES is text, one word group per line:
//   op NAME                                 begins a call
//   t DTYPE RANK SIZE... ORDER... OFFSET    tensor argument; its bytes are in BLOB from OFFSET
//   o DTYPE RANK SIZE... ORDER...           output; may be resized up to these sizes. Of several
//                                           the first is reported
//   n | i INT | d DOUBLE | b 0|1            none, integer, double, boolean
//   l COUNT INT...                          list of integers
//   temp BYTES                              temporary memory of the following calls
//   end                                     makes the call
// Stdout gets a line per call: "result ERROR KERNEL RANK SIZE...", KERNEL being `keyed`,
// `fallback` or `missing`; RESULTS gets the float32 outputs of successful calls one after another.
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using executorch::aten::DimOrderType;
using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::aten::StridesType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::runtime::EValue;
using executorch::runtime::TensorMeta;

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "op_cases: %s\n", what.c_str());
  std::exit(1);
}

struct OwnedTensor {
  std::vector<SizesType> sizes;
  std::vector<DimOrderType> order;
  std::vector<StridesType> strides;
  std::vector<char> bytes;
  std::unique_ptr<TensorImpl> impl;
};

class Call {
 public:
  explicit Call(std::string name) : name_(std::move(name)) {}

  void tensor(std::istringstream& line, const std::vector<char>* blob) {
    int dtype = 0;
    int rank = 0;
    line >> dtype >> rank;
    tensors_.emplace_back();
    OwnedTensor& t = tensors_.back();
    const auto n = static_cast<std::size_t>(rank);
    t.sizes.resize(n);
    t.order.resize(n);
    t.strides.resize(n);
    for (SizesType& size : t.sizes) line >> size;
    std::size_t count = 1;
    for (DimOrderType& dim : t.order) {
      int value = 0;
      line >> value;
      dim = static_cast<DimOrderType>(value);
    }
    for (std::size_t i = n; i-- > 0;) {
      t.strides[t.order[i]] = static_cast<StridesType>(count);
      count *= static_cast<std::size_t>(t.sizes[t.order[i]] > 0 ? t.sizes[t.order[i]] : 1);
    }
    const auto type = static_cast<ScalarType>(dtype);
    t.impl = std::make_unique<TensorImpl>(type, rank, t.sizes.data(), nullptr, t.order.data(),
                                          t.strides.data(),
                                          executorch::aten::TensorShapeDynamism::DYNAMIC_BOUND);
    t.bytes.resize(t.impl->nbytes());
    if (blob != nullptr) {
      std::size_t offset = 0;
      line >> offset;
      if (!line || offset + t.bytes.size() > blob->size()) refuse("tensor outside the blob");
      std::copy_n(blob->begin() + static_cast<std::ptrdiff_t>(offset), t.bytes.size(),
                  t.bytes.begin());
    } else {
      if (outputs_++ == 0) out_ = &t;
    }
    t.impl->set_data(t.bytes.data());
    metas_.emplace_back(type, executorch::runtime::Span<DimOrderType>{t.order.data(), n});
    values_.emplace_back(Tensor(t.impl.get()));
  }

  void list(std::istringstream& line) {
    std::size_t count = 0;
    line >> count;
    lists_.emplace_back();
    List& l = lists_.back();
    l.items.resize(count);
    l.unboxed.resize(count);
    for (EValue& item : l.items) {
      int64_t value = 0;
      line >> value;
      item = EValue(value);
      l.pointers.push_back(&item);
    }
    l.boxed = std::make_unique<executorch::runtime::BoxedEvalueList<int64_t>>(
        l.pointers.data(), l.unboxed.data(), static_cast<int>(count));
    values_.emplace_back(l.boxed.get());
  }

  void value(EValue v) { values_.push_back(std::move(v)); }

  void run(std::size_t temp_bytes, std::ostream& results) {
    if (out_ == nullptr) refuse("a call without output");
    if (outputs_ == 1) metas_.push_back(metas_.back());  // it is also the returned value
    const auto keyed = executorch::runtime::get_op_function_from_registry(
        name_.c_str(), {metas_.data(), metas_.size()});
    if (!keyed.ok()) {
      std::cout << "result 0 missing 0\n";
      return;
    }
    bool fallback = false;
    if (executorch::runtime::registry_has_op_function(name_.c_str())) {
      fallback = *executorch::runtime::get_op_function_from_registry(name_.c_str()) == *keyed;
    }
    std::vector<EValue*> stack;
    for (EValue& v : values_) stack.push_back(&v);
    EValue tuple;  // what several outputs are returned in; kernels leave it alone
    stack.push_back(outputs_ == 1 ? stack.back() : &tuple);
    std::vector<unsigned char> temp(temp_bytes);
    executorch::runtime::MemoryAllocator allocator(static_cast<uint32_t>(temp.size()), temp.data());
    executorch::runtime::KernelRuntimeContext context(nullptr, &allocator);
    (*keyed)(context, {stack.data(), stack.size()});
    const auto error = static_cast<int>(context.failure_state());
    std::cout << "result " << error << (fallback ? " fallback " : " keyed ") << out_->impl->dim();
    for (int i = 0; i < out_->impl->dim(); ++i) std::cout << ' ' << out_->impl->size(i);
    std::cout << '\n';
    if (error == 0) {
      results.write(out_->bytes.data(), static_cast<std::streamsize>(out_->impl->nbytes()));
    }
  }

 private:
  struct List {
    std::vector<EValue> items;
    std::vector<EValue*> pointers;
    std::vector<int64_t> unboxed;
    std::unique_ptr<executorch::runtime::BoxedEvalueList<int64_t>> boxed;
  };

  std::string name_;
  std::list<OwnedTensor> tensors_;
  std::list<List> lists_;
  std::vector<TensorMeta> metas_;
  std::vector<EValue> values_;
  OwnedTensor* out_ = nullptr;
  int outputs_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) refuse("usage: op_cases CASES BLOB RESULTS");
  executorch::runtime::runtime_init();
  std::ifstream cases(argv[1]);
  std::ifstream blob_file(argv[2], std::ios::binary);
  std::ofstream results(argv[3], std::ios::binary);
  if (!cases || !blob_file || !results) refuse("cannot open the files");
  const std::vector<char> blob((std::istreambuf_iterator<char>(blob_file)),
                               std::istreambuf_iterator<char>());
  std::unique_ptr<Call> call;
  std::size_t temp_bytes = 1 << 20;
  for (std::string text; std::getline(cases, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "op") {
      std::string name;
      line >> name;
      call = std::make_unique<Call>(name);
    } else if (kind == "temp") {
      line >> temp_bytes;
    } else if (!call) {
      refuse("a call must begin with op: " + text);
    } else if (kind == "t") {
      call->tensor(line, &blob);
    } else if (kind == "o") {
      call->tensor(line, nullptr);
    } else if (kind == "n") {
      call->value(EValue());
    } else if (kind == "i") {
      int64_t v = 0;
      line >> v;
      call->value(EValue(v));
    } else if (kind == "d") {
      std::string v;  // through strtod, which knows inf and nan
      line >> v;
      call->value(EValue(std::strtod(v.c_str(), nullptr)));
    } else if (kind == "b") {
      bool v = false;
      line >> v;
      call->value(EValue(v));
    } else if (kind == "l") {
      call->list(line);
    } else if (kind == "end") {
      call->run(temp_bytes, results);
      call.reset();
    } else {
      refuse("unknown line: " + text);
    }
  }
  return 0;
}
