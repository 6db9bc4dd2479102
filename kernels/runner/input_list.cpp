#include "input_list.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <unordered_set>

#include "crc.h"
#include "failure.h"
#include "file_bytes.h"

namespace k230 {
namespace {

constexpr const char* kMagic = "#k230-inputs";

[[noreturn]] void refuse(std::size_t line, const std::string& what) {
  throw Failure(FailCode::kList, "line " + std::to_string(line) + ": " + what);
}

bool to_unsigned(const std::string& text, int base, uint64_t limit, uint64_t& value) {
  if (text.empty() || std::strchr("+- ", text[0]) != nullptr) {
    return false;
  }
  errno = 0;
  char* end = nullptr;
  const unsigned long long parsed = std::strtoull(text.c_str(), &end, base);
  if (errno != 0 || *end != '\0' || parsed > limit) {
    return false;
  }
  value = parsed;
  return true;
}

std::vector<float> to_channels(const std::string& key, const std::string& text) {
  std::vector<float> values;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    char* end = nullptr;
    values.push_back(std::strtof(part.c_str(), &end));
    if (part.empty() || *end != '\0') {
      refuse(1, key + "=" + text + " is no list of numbers");
    }
  }
  return values;
}

void parse_header(const std::string& line, InputList& list) {
  std::istringstream words(line);
  std::string magic;
  std::string version;
  words >> magic >> version;
  if (magic != kMagic || version != "1") {
    refuse(1, std::string("expected '") + kMagic + " 1', found '" + line.substr(0, 40) + "'");
  }
  std::map<std::string, std::string> fields;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      refuse(1, "'" + word + "' is no key=value");
    }
    fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  uint64_t nbytes = 0;
  if (!to_unsigned(fields["nbytes"], 10, SIZE_MAX, nbytes) || nbytes == 0) {
    refuse(1, "nbytes is missing or no number");
  }
  list.nbytes = static_cast<std::size_t>(nbytes);
  if (fields["dtype"] == "float32") {
    list.type = InputType::kFloat32;
    return;
  }
  if (fields["dtype"] != "uint8") {
    refuse(1, "dtype must be float32 or uint8, found '" + fields["dtype"] + "'");
  }
  list.type = InputType::kUint8;
  list.mean = to_channels("mean", fields["mean"]);
  list.std = to_channels("std", fields["std"]);
  if (list.mean.empty() || list.mean.size() != list.std.size()) {
    refuse(1, "dtype=uint8 needs mean and std of equal length");
  }
  if (std::find(list.std.begin(), list.std.end(), 0.0f) != list.std.end()) {
    refuse(1, "std must not be 0");
  }
}

}  // namespace

InputList parse_input_list(const std::string& text, const std::string& folder) {
  InputList list;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line)) {
    throw Failure(FailCode::kList, "the list is empty");
  }
  parse_header(line, list);
  std::map<std::string, std::size_t> seen_files;
  std::unordered_set<uint64_t> seen_ids;
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    if (line.empty()) {
      continue;
    }
    std::istringstream words(line);
    std::string id;
    std::string file;
    std::string offset;
    std::string crc;
    std::string rest;
    words >> id >> file >> offset >> crc;
    Sample sample;
    uint64_t crc_value = 0;
    if ((words >> rest) || crc.size() != 8 || !to_unsigned(id, 10, UINT64_MAX, sample.id) ||
        !to_unsigned(offset, 10, INT64_MAX, sample.offset) ||
        !to_unsigned(crc, 16, UINT32_MAX, crc_value)) {
      refuse(number, "expected 'id file offset crc32', found '" + line.substr(0, 40) + "'");
    }
    if (!seen_ids.insert(sample.id).second) {
      refuse(number, "sample " + id + " appears twice");
    }
    sample.crc = static_cast<uint32_t>(crc_value);
    const auto [entry, is_new] = seen_files.emplace(file, list.files.size());
    if (is_new) {
      list.files.push_back(file[0] == '/' ? file : folder + "/" + file);
    }
    sample.file = entry->second;
    list.samples.push_back(sample);
  }
  if (list.samples.empty()) {
    throw Failure(FailCode::kList, "the list names no sample");
  }
  list.crc = crc32(text.data(), text.size());
  return list;
}

InputList read_input_list(const std::string& path) {
  std::string text;
  if (!read_whole(path, text)) {
    throw Failure(FailCode::kList, "cannot read " + path + ": " + std::strerror(errno));
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  return parse_input_list(text, folder);
}

}  // namespace k230
