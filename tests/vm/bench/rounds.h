#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace rnicd::vm_bench {

// One of several ways to do the same operation.
struct Contender {
  std::string name;
  // The timed function.
  std::function<void()> run;
  // Number of operations in one run, by which its time is divided.
  double operations = 1;
  // Undoes `run`; not timed.
  std::function<void()> put_back = nullptr;
};

struct RoundLimits {
  std::chrono::milliseconds budget{4000};
  // Minimum number of rounds, even when the budget is spent.
  int rounds_min = 7;
  int rounds_max = 300;
};

struct Medians {
  int rounds = 0;
  // Microseconds per operation, by contender name.
  std::map<std::string, double> us;
};

// Runs the contenders alternately, so that disturbances of the machine affect all of them, and returns the median of
// each. All run the same number of rounds. One warm-up round is not counted.
Medians Measure(const std::vector<Contender>& contenders, const RoundLimits& limits = {});

double Median(std::vector<double> values);

// The result as one row for scripts/pages/verbs_bench_table.py, also printed; `labels` name what was measured.
nlohmann::json Row(const std::string& table, const nlohmann::json& labels, const Medians& medians);

// Exits the program: a figure of a failed operation is worthless.
[[noreturn]] void Fail(const std::string& what);
void Require(bool holds, const std::string& what);
template <typename T>
T Must(absl::StatusOr<T> outcome) {
  Require(outcome.ok(), outcome.status().ToString());
  return *std::move(outcome);
}

}  // namespace rnicd::vm_bench
