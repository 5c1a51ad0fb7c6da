#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace rnicd::vm_bench {

// One way of doing a thing that is done in several ways.
struct Contender {
  std::string name;
  // What is timed.
  std::function<void()> run;
  // Operations that one run makes; its time is divided by them.
  double operations = 1;
  // Puts back what run made; not timed.
  std::function<void()> put_back = nullptr;
};

struct RoundLimits {
  std::chrono::milliseconds budget{4000};
  // Rounds that are made even when the budget is spent.
  int rounds_min = 7;
  int rounds_max = 300;
};

struct Medians {
  int rounds = 0;
  // Microseconds of one operation, by the contender's name.
  std::map<std::string, double> us;
};

// Lets the contenders take turns, so that what disturbs the machine disturbs them all, and answers the median of each.
// Each begins as many rounds as the others. One round before the first is not counted.
Medians Measure(const std::vector<Contender>& contenders, const RoundLimits& limits = {});

double Median(std::vector<double> values);

// The result as one row for scripts/pages/verbs_bench_table.py, also printed; `labels` say what was measured.
nlohmann::json Row(const std::string& table, const nlohmann::json& labels, const Medians& medians);

// Ends the program: a figure of something that failed is worth nothing.
[[noreturn]] void Fail(const std::string& what);
void Require(bool holds, const std::string& what);

}  // namespace rnicd::vm_bench
