#pragma once

#include "daemon/core/tenant/observation.h"
#include "log/logger.h"

namespace rnicd::app {

// Logs the begin and the end of each session. Threads: safe.
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

}  // namespace rnicd::app
