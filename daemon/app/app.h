#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/files/file_watch.h"
#include "base/secrets/random.h"
#include "daemon/app/config/config.h"
#include "daemon/health/health_board.h"
#include "daemon/health/serving_check.h"
#include "daemon/service/admin/admin_process.h"
#include "log/library_log/library_log.h"
#include "log/logger.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"

namespace rnicd::health {
class Prober;
}  // namespace rnicd::health

namespace rnicd::app {

class DoorNames;
class PageServer;
class ProcessHost;
class Succession;
struct PageParts;
struct SuccessionCallbacks;

// The daemon: assembles its parts in numbered steps, and takes them apart in the reverse order.
// Lifetime: call Start once; destroy after it has failed, or after Stop.
// Threads:  Start and Stop from one thread.
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
  // A newer generation has taken over: it goes on for its sessions, and then asks the host to end.
  bool retired() const;

  std::string version() const override;
  uint32_t generation() const override;
  std::string metrics_address() const override;
  uint64_t connections() const override;
  uint64_t device_regions() const override;
  std::vector<health::AdapterHealth> adapters() const override;
  std::string policy_file() const override { return config_.policy_file; }
  core::Doors* doors() const override;
  void OnGrantNarrowed(GrantId grant, const std::string& pod_uid) override;
  absl::StatusOr<std::string> SetLogLevel(std::string_view level) override;
  // A refused file leaves the policy in force; the log and the error have the reasons.
  absl::Status ReloadPolicy() override;
  bool SetDraining(bool draining) override;

 private:
  // Parts that are made and ended together; app.cc has them.
  struct Observing;
  struct Core;
  struct Front;

  absl::StatusOr<core::Policy> ReadPolicy() const;
  SuccessionCallbacks OnSuccession();
  void Step(int number, const char* what) const;
  absl::Status StartObservers();
  absl::Status StartProvider();
  absl::Status StartCore(core::Policy policy);
  PageParts PartsOfPages();
  void StartProbes();
  absl::Status BuildFrontDoor(DoorNames& names);
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
  std::unique_ptr<Observing> observing_;
  std::unique_ptr<provider::Provider> provider_;
  std::unique_ptr<Core> core_;
  health::ServingCheck serving_{clock_};
  health::HealthBoard health_{serving_};
  std::unique_ptr<health::Prober> prober_;
  std::unique_ptr<Succession> succession_;
  std::unique_ptr<Front> front_;
  std::unique_ptr<PageServer> pages_;
};

}  // namespace rnicd::app
