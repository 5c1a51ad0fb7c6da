#pragma once

#include <optional>

#include "base/mutex.h"
#include "daemon/core/request/worker_pool.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/health/prober.h"
#include "daemon/metrics/metrics.h"
#include "log/logger.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"

namespace rnicd::app {

void LogHealth(const log::Logger& logger, const health::AdapterHealth& adapter);
// Logs how the adapter makes fast registrations, if there are several ways.
void LogEngine(const log::Logger& logger, const provider::AdapterDescription& adapter);

// Hands the events of cards to the log and the metrics, and those that come and go to their followers.
// Threads: safe. On a thread of the provider, which is not called there.
class CardEvents {
 public:
  // What follows the cards; the executor looks at one that came.
  struct Followers {
    core::SessionRegistry& registry;
    health::Prober& prober;
    provider::Provider& provider;
    core::Executor& executor;
  };

  CardEvents(const log::Logger& logger, metrics::Metrics& metrics) : logger_(logger), metrics_(metrics) {}

  void OnEvent(const provider::AdapterEvent& event);
  void BeginFollowing(const Followers& followers);
  // When it returns, they are not called any more.
  void EndFollowing();

 private:
  void Tell(const provider::AdapterEvent& event) RNICD_REQUIRES(mutex_);

  const log::Logger& logger_;
  metrics::Metrics& metrics_;
  Mutex mutex_;
  std::optional<Followers> followers_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::app
