#include "tests/bench/ring_turns.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;

// At the start of a turn, not counted: caches, and a daemon that sleeps, are as the row before left them.
constexpr int kWarmUp = 10;

class Timer {
 public:
  explicit Timer(const TimedRow& row) : row_(row) {}

  void TakeTurn() {
    for (int step = 0; step < kWarmUp; ++step) {
      row_.step(calls_++);
    }
    for (int step = 0; step < row_.steps_in_turn; ++step) {
      const Clock::time_point begin = Clock::now();
      row_.step(calls_++);
      times_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / row_.requests);
    }
  }
  Figures Result() {
    std::sort(times_.begin(), times_.end());
    return {.median = times_[times_.size() / 2], .p99 = times_[times_.size() * 99 / 100]};
  }

 private:
  const TimedRow& row_;
  int calls_ = 0;
  std::vector<double> times_;
};

}  // namespace

std::vector<Figures> TimeInTurns(const std::vector<TimedRow>& rows, int turns) {
  std::vector<Timer> timers(rows.begin(), rows.end());
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::minstd_rand random(1);
  for (int turn = 0; turn < turns; ++turn) {
    std::ranges::shuffle(order, random);
    for (const size_t index : order) {
      timers[index].TakeTurn();
    }
  }
  std::vector<Figures> figures;
  std::ranges::transform(timers, std::back_inserter(figures), &Timer::Result);
  return figures;
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

void Fail(const absl::Status& status) {
  std::fprintf(stderr, "rnicd_ring_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

void Must(const absl::Status& status) {
  if (!status.ok()) {
    Fail(status);
  }
}

}  // namespace rnicd::bench
