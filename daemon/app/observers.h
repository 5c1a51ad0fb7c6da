#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/tenant/observation.h"

namespace rnicd::app {

// Forwards every event to several observers, in their order.
// Threads: safe, as its observers are.
class Observers final : public core::Observer {
 public:
  // All outlive this.
  explicit Observers(std::vector<core::Observer*> all) : all_(std::move(all)) {}

  void Observe(const core::Observation& observation) override {
    for (core::Observer* const one : all_) {
      one->Observe(observation);
    }
  }
  bool HeedsSuccesses() const override {
    return std::any_of(all_.begin(), all_.end(), [](const core::Observer* one) { return one->HeedsSuccesses(); });
  }

 private:
  const std::vector<core::Observer*> all_;
};

}  // namespace rnicd::app
