#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// What the parts of rnicd_ring_bench share: rows that alternate, and failures that end the program.
namespace rnicd::bench {

// One row of a table: an operation that is timed by itself, many times.
struct TimedRow {
  std::string name;
  // Counts its calls from 0.
  std::function<void(int call)> step;
  // Requests of one step, by which its time is divided.
  int requests = 1;
  // Steps in one turn; the slower, the fewer.
  int steps_in_turn = 100;
};

// Microseconds for one request.
struct Figures {
  double median = 0;
  double p99 = 0;
};

// The rows alternate in short turns, in random order: what else the machine does meets them all alike.
std::vector<Figures> TimeInTurns(const std::vector<TimedRow>& rows, int turns);

double MedianOf(std::vector<double> values);

// Keeps this process, and those that it starts from now on, on one processor.
void Pin(int core);

// Exits the program: a figure of a failed operation is worthless.
[[noreturn]] void Fail(const absl::Status& status);
void Must(const absl::Status& status);
template <typename T>
T Must(absl::StatusOr<T> outcome) {
  Must(outcome.status());
  return *std::move(outcome);
}

}  // namespace rnicd::bench
