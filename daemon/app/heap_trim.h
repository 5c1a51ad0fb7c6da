#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/core/request/alarms.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::app {

// Gives memory that ended sessions have freed back to the kernel. malloc alone keeps it where something younger lies
// behind it, and the daemon would stay as large as its busiest moment.
// Threads: safe.
class HeapTrim final : public core::Observer {
 public:
  // Sessions that end within this time are trimmed together; where no session ends, nothing is done.
  static constexpr std::chrono::seconds kDelay{5};

  // The alarms outlive this. `trim` is called on their thread, and may be called after this is destroyed.
  HeapTrim(core::Alarms& alarms, std::function<void()> trim)
      : alarms_(alarms), trim_(std::move(trim)), due_(std::make_shared<std::atomic<bool>>(false)) {}

  void Observe(const core::Observation& observation) override;
  bool HeedsSuccesses() const override { return false; }

 private:
  core::Alarms& alarms_;
  const std::function<void()> trim_;
  // True while an alarm is set.
  const std::shared_ptr<std::atomic<bool>> due_;
};

}  // namespace rnicd::app
