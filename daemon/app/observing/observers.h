#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/core/request/alarms.h"
#include "daemon/core/tenant/observation.h"
#include "log/logger.h"

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

// Logs the begin and the end of each session.
// Threads: safe.
class SessionLog final : public core::Observer {
 public:
  // The logger outlives this.
  explicit SessionLog(const log::Logger& logger) : logger_(logger) {}

  // Handles SessionOpened and SessionEnded only.
  void Observe(const core::Observation& observation) override;
  bool HeedsSuccesses() const override { return false; }

 private:
  void Log(const core::SessionOpened& opened) const;
  void Log(const core::SessionEnded& ended) const;

  const log::Logger& logger_;
};

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
