#include "tests/vm/bench/rounds.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

namespace rnicd::vm_bench {
namespace {

using Clock = std::chrono::steady_clock;

double Run(const Contender& contender) {
  const auto before = Clock::now();
  contender.run();
  const std::chrono::duration<double, std::micro> took = Clock::now() - before;
  if (contender.put_back != nullptr) {
    contender.put_back();
  }
  return took.count() / contender.operations;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Medians Measure(const std::vector<Contender>& contenders, const RoundLimits& limits) {
  for (const Contender& contender : contenders) {
    Run(contender);
  }
  std::vector<std::vector<double>> times(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A contender runs with the processor's caches as its predecessor left them, so shuffle the order in each round.
  std::mt19937 random(1);
  const auto end = Clock::now() + limits.budget;
  Medians medians;
  while (medians.rounds < limits.rounds_max && (medians.rounds < limits.rounds_min || Clock::now() < end)) {
    std::ranges::shuffle(order, random);
    for (const size_t index : order) {
      times[index].push_back(Run(contenders[index]));
    }
    ++medians.rounds;
  }
  for (size_t index = 0; index < contenders.size(); ++index) {
    medians.us[contenders[index].name] = Median(std::move(times[index]));
  }
  return medians;
}

nlohmann::json Row(const std::string& table, const nlohmann::json& labels, const Medians& medians) {
  nlohmann::json row = {{"table", table}, {"labels", labels}, {"rounds", medians.rounds}, {"us", medians.us}};
  std::string line = table;
  for (const auto& [name, value] : labels.items()) {
    line += " " + name + "=" + value.dump();
  }
  for (const auto& [name, us] : medians.us) {
    char text[64];
    std::snprintf(text, sizeof(text), " %.1f", us);
    line += "  " + name + text;
  }
  std::printf("%s  (%d rounds)\n", line.c_str(), medians.rounds);
  std::fflush(stdout);
  return row;
}

void Fail(const std::string& what) {
  std::fprintf(stderr, "rnicd_vm_bench: %s\n", what.c_str());
  std::exit(1);
}

void Require(bool holds, const std::string& what) {
  if (!holds) {
    Fail(what);
  }
}

}  // namespace rnicd::vm_bench
