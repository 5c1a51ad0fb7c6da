#pragma once

#include <chrono>

namespace rnicd {

using Instant = std::chrono::steady_clock::time_point;

// The only source of time, so that tests and simulation can control it. Threads: safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace rnicd
