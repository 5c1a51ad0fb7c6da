#pragma once

#include <prometheus/client_metric.h>

#include <optional>
#include <string_view>
#include <vector>

namespace rnicd::metrics {

// Each takes something off the front of what is left of a line.

// True, and `start` is taken, if `rest` starts with it.
bool Skip(std::string_view& rest, std::string_view start);
// Empty where there is no name.
std::string_view TakeName(std::string_view& rest);
// `{name="value",...}`; without a brace there are no labels.
bool TakeLabels(std::string_view& rest, std::vector<prometheus::ClientMetric::Label>& labels);

// A whole number or fraction from 0 on, or +Inf.
std::optional<double> NumberOf(std::string_view text);

}  // namespace rnicd::metrics
