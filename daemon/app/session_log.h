#pragma once

#include "daemon/core/observer.h"
#include "daemon/log/logger.h"

namespace rnicd::app {

// Logs the begin and the end of each session. Threads: safe.
class SessionLog final : public core::Observer {
 public:
  // The logger outlives this.
  explicit SessionLog(const log::Logger& logger) : logger_(logger) {}

  void OnSessionOpened(SessionId id, const core::Caller& caller) override;
  void OnSessionEnded(SessionId id, const core::Caller& caller, core::EndCause cause,
                      const core::Reclaimed& reclaimed) override;
  bool HeedsSuccesses() const override { return false; }

 private:
  const log::Logger& logger_;
};

}  // namespace rnicd::app
