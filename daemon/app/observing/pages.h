#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/audit/audit_log.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/health/health_text.h"
#include "daemon/health/prober.h"
#include "daemon/health/serving_check.h"
#include "daemon/metrics/exposer.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/state.h"
#include "daemon/status_page/history.h"
#include "daemon/status_page/recent_failures.h"
#include "daemon/status_page/status_page.h"
#include "log/logger.h"

namespace rnicd::app {

// History for the status page; observes the daemon from its start.
struct PageMemory {
  status_page::RecentFailures failures;
  status_page::History history;
};

// The parts that the pages read. All outlive them; functions are called from the thread that serves the pages.
struct PageParts {
  const core::Node& node;
  const core::SessionRegistry& registry;
  const metrics::Metrics& metrics;
  const health::Prober& prober;
  const health::ServingCheck& serving;
  // Null when no audit log is kept.
  const audit::AuditLog* audit;
  const log::Logger& log;
  // Null for a daemon without a status page.
  PageMemory* memory;
  std::string version;
  std::string policy_file;
  std::function<uint64_t()> connections;
  // Null where nothing is inherited.
  const metrics::InheritedCounters* inherited = nullptr;
  // Those that still serve sessions.
  std::function<std::vector<core::OlderGeneration>()> older_generations = [] {
    return std::vector<core::OlderGeneration>();
  };
};

// What a newer generation's page is to go on with. Callable from any thread, also where no page is served.
std::string CountersText(const PageParts& parts);

// The pages of the daemon's HTTP server: /metrics, /healthz, /readyz and, if enabled, the status page.
// Lifetime: the destructor waits for running requests.
// Threads:  safe.
class Pages {
 public:
  // Errors: as Exposer::Start.
  static absl::StatusOr<std::unique_ptr<Pages>> Start(const std::string& address, PageParts parts,
                                                      UniqueSocket listener = {});
  // As Exposer::TakeListener.
  UniqueSocket TakeListener() { return exposer_->TakeListener(); }

  // The bound address, host:port.
  const std::string& address() const { return exposer_->address(); }

 private:
  explicit Pages(PageParts parts);

  metrics::Page Metrics() const;
  metrics::Page Ready() const;
  metrics::Page Alive() const;
  std::vector<metrics::Route> Routes();
  void AddStatusPage(std::vector<metrics::Route>& routes);

  const PageParts parts_;
  const metrics::Sources sources_;
  std::unique_ptr<status_page::StatusPage> status_page_;
  std::unique_ptr<status_page::Sampler> sampler_;
  // Last, so that it is destroyed first: its thread uses the rest.
  std::unique_ptr<metrics::Exposer> exposer_;
};

}  // namespace rnicd::app
