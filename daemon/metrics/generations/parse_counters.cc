// Reads the text format of Prometheus.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "daemon/metrics/generations/counter_samples.h"
#include "daemon/metrics/generations/tokens.h"

namespace rnicd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// Above it, the doubles of the text leave integers out.
constexpr double kMostCount = uint64_t{1} << 53;

class Parser {
 public:
  bool Line(std::string_view line) {
    if (Skip(line, "# HELP ")) {
      name_ = TakeName(line);
      Skip(line, " ");
      help_ = line;
      return !name_.empty();
    }
    if (Skip(line, "# TYPE ")) {
      return Type(line);
    }
    if (line.empty() || family_ == nullptr) {
      return line.empty() || left_out_;
    }
    return Sample(line);
  }

  absl::StatusOr<CountersByName> Take() {
    for (const auto& [name, family] : families_) {
      for (const auto& [labels, sample] : family.by_labels) {
        if (family.type == MetricType::Histogram && !IsSound(sample.histogram)) {
          return absl::InvalidArgumentError(name);
        }
      }
    }
    return std::move(families_);
  }

 private:
  bool Type(std::string_view line) {
    const std::string name(TakeName(line));
    const bool counter = line == " counter";
    left_out_ = !counter && line != " histogram";
    family_ = nullptr;
    if (name.empty() || left_out_) {
      return !name.empty();
    }
    const auto [place, added] = families_.try_emplace(name);
    place->second.type = counter ? MetricType::Counter : MetricType::Histogram;
    place->second.help = name == name_ ? help_ : "";
    name_ = name;
    family_ = &place->second;
    return added;
  }

  bool Sample(std::string_view line) {
    const std::string_view name = TakeName(line);
    ClientMetric read;
    if (!TakeLabels(line, read.label) || !Skip(line, " ")) {
      return false;
    }
    const std::optional<double> value = NumberOf(line);
    if (!value.has_value() || !std::isfinite(*value)) {
      return false;
    }
    if (family_->type == MetricType::Histogram) {
      return PartOfHistogram(name, std::move(read), *value);
    }
    read.counter.value = *value;
    SortedLabels labels = LabelsOf(read);
    return name == name_ && family_->by_labels.emplace(std::move(labels), std::move(read)).second;
  }

  bool PartOfHistogram(std::string_view part, ClientMetric read, double value) {
    if (!Skip(part, name_)) {
      return false;
    }
    std::optional<double> bound;
    if (!read.label.empty() && read.label.back().name == "le") {
      bound = NumberOf(read.label.back().value);
      read.label.pop_back();
    }
    ClientMetric::Histogram& histogram = family_->by_labels.try_emplace(LabelsOf(read), read).first->second.histogram;
    if (part == "_sum") {
      histogram.sample_sum = value;
      return true;
    }
    if (part == "_count" && value <= kMostCount) {
      histogram.sample_count = static_cast<uint64_t>(value);
      return true;
    }
    if (part == "_bucket" && value <= kMostCount && bound.has_value()) {
      histogram.bucket.push_back({static_cast<uint64_t>(value), *bound});
      return true;
    }
    return false;
  }

  static bool IsSound(const ClientMetric::Histogram& histogram) {
    const auto& buckets = histogram.bucket;
    return !buckets.empty() && std::isinf(buckets.back().upper_bound) &&
           buckets.back().cumulative_count == histogram.sample_count &&
           std::ranges::is_sorted(buckets, {}, &ClientMetric::Bucket::upper_bound) &&
           std::ranges::is_sorted(buckets, {}, &ClientMetric::Bucket::cumulative_count);
  }

  CountersByName families_;
  // What the lines that are read now belong to.
  CounterSamples* family_ = nullptr;
  bool left_out_ = false;
  std::string name_;
  std::string help_;
};

}  // namespace

absl::StatusOr<CountersByName> ParseCounters(std::string_view text) {
  if (!text.empty() && text.back() != '\n') {
    return absl::InvalidArgumentError("the last line has no end");
  }
  Parser parser;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!parser.Line(line)) {
      return absl::InvalidArgumentError("line " + std::to_string(number));
    }
    text.remove_prefix(line.size() + 1);
  }
  return parser.Take();
}

}  // namespace rnicd::metrics
