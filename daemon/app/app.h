#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/file_watch.h"
#include "base/mutex.h"
#include "base/random.h"
#include "daemon/app/config.h"
#include "daemon/app/session_log.h"
#include "daemon/health/health_board.h"
#include "daemon/health/serving_check.h"
#include "daemon/service/admin_process.h"
#include "log/library_log/library_log.h"
#include "log/logger.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"

namespace rnicd::audit {
class AuditLog;
}  // namespace rnicd::audit

namespace rnicd::core {
class Alarms;
struct Node;
class SessionRegistry;
class TenantDirectory;
class TicketTable;
class WorkerPool;
}  // namespace rnicd::core

namespace rnicd::door {
class Bulkhead;
}  // namespace rnicd::door

namespace rnicd::health {
class Prober;
}  // namespace rnicd::health

namespace rnicd::metrics {
class Metrics;
}  // namespace rnicd::metrics

namespace rnicd::rings {
class RingThreads;
}  // namespace rnicd::rings

namespace rnicd::server {
class RpcConnectionServer;
}  // namespace rnicd::server

namespace rnicd::app {

class DoorNames;
class HeapTrim;
class Observers;
struct PageMemory;
class Pages;
class ProcessHost;
class SystemDoor;

// The daemon: assembles its parts in numbered steps, and takes them apart in the reverse order.
// Lifetime: call Start once; destroy after it has failed, or after Stop. Threads: Start and Stop from one thread.
class App final : public service::ProcessControl {
 public:
  // `host` outlives it.
  App(Config config, ProcessHost& host);
  ~App() override;

  // Returns when the daemon serves; `confinement` is for the log. Errors: the part that could not be started, with its
  // path or address.
  absl::Status Start(const log::Field& confinement);
  // Ends all sessions and connections. Returns false if some were not reclaimed within the drain timeout.
  bool Stop();

  const log::Logger& logger() const { return logger_; }

  std::string version() const override;
  std::string metrics_address() const override;
  uint64_t connections() const override;
  uint64_t device_regions() const override;
  std::vector<health::AdapterHealth> adapters() const override;
  std::string policy_file() const override { return config_.policy_file; }
  absl::StatusOr<std::string> SetLogLevel(std::string_view level) override;
  // A refused file leaves the policy in force; the log and the error have the reasons.
  absl::Status ReloadPolicy() override;
  bool SetDraining(bool draining) override;

 private:
  absl::StatusOr<core::Policy> ReadPolicy() const;
  void RaiseLimits() const;
  void Step(int number, const char* what) const;
  void OnAdapterEvent(const provider::AdapterEvent& event);
  absl::Status StartObservers();
  absl::Status StartProvider();
  absl::Status StartCore(core::Policy policy);
  absl::Status StartPages();
  void StartProbes();
  absl::Status BuildFrontDoor();
  void StartServingCheck();
  // Returns false if a session or a probe did not end within the drain timeout.
  bool EndSessionsAndProbes();

  const Config config_;
  ProcessHost& host_;
  log::Logger logger_;
  const SteadyClock clock_;
  library_log::LibraryLog library_log_{logger_, clock_};
  KernelRandom random_;

  // In the order of the steps, so that members are destroyed in the reverse order.
  std::unique_ptr<DoorNames> names_;
  std::unique_ptr<metrics::Metrics> metrics_;
  std::unique_ptr<audit::AuditLog> audit_;
  SessionLog session_log_{logger_};
  std::unique_ptr<core::Alarms> alarms_;
  std::unique_ptr<HeapTrim> heap_trim_;
  // Null without a status page.
  std::unique_ptr<PageMemory> page_memory_;
  std::unique_ptr<Observers> observer_;
  std::unique_ptr<provider::Provider> provider_;
  std::unique_ptr<FileWatch> file_watch_;
  std::unique_ptr<core::LingeringMemory> lingering_;
  std::unique_ptr<core::WorkerPool> workers_;
  std::unique_ptr<core::WorkerPool> populators_;
  std::unique_ptr<core::WorkerPool> fd_workers_;
  std::unique_ptr<core::WorkerPool> reapers_;
  std::unique_ptr<core::TicketTable> tickets_;
  std::unique_ptr<core::TenantDirectory> tenants_;
  std::atomic<bool> draining_{false};
  Mutex drain_mutex_;
  // Once true, draining_ stays true.
  bool stopping_ RNICD_GUARDED_BY(drain_mutex_) = false;
  // Null without rings.
  std::unique_ptr<rings::RingThreads> rings_;
  // Null where no memory is kept ready.
  std::unique_ptr<core::MemoryPool> pool_;
  std::unique_ptr<core::PoolRefiller> pool_refiller_;
  std::unique_ptr<core::Node> node_;
  std::unique_ptr<core::SessionRegistry> registry_;
  health::ServingCheck serving_{clock_};
  health::HealthBoard health_{serving_};
  std::unique_ptr<health::Prober> prober_;
  // Where what clients may block is done. Sockets of both of the next two are closed there.
  std::unique_ptr<door::Bulkhead> bulkhead_;
  std::unique_ptr<server::RpcConnectionServer> connection_server_;
  std::unique_ptr<SystemDoor> front_door_;
  std::unique_ptr<Pages> pages_;
};

}  // namespace rnicd::app
