#pragma once

#include "daemon/core/observation.h"

namespace rnicd::core {

// Receives the events of core, gate and transport: metrics and logs implement it, core depends on neither.
// Threads: called from any thread, never under a lock of core. Must be quick and must not call core.
class Observer {
 public:
  virtual ~Observer() = default;

  // Reports an event of observation.h.
  template <typename Event>
  void Report(const Event& event) {
    Observe(Observation(event));
  }

  virtual void Observe(const Observation& observation) = 0;
  // False when Observe ignores every Decision that is a success, which then need not be described to it.
  virtual bool HeedsSuccesses() const { return true; }
};

}  // namespace rnicd::core
