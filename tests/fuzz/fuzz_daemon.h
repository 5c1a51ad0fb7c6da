#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/mutex.h"
#include "base/secrets/seeded_random_fake.h"
#include "base/system/faulty_os.h"
#include "daemon/core/session/wired_node_test.h"
#include "daemon/health/health_board.h"
#include "daemon/rings/ring_threads.h"
#include "daemon/server/rpc_connection_server.h"
#include "daemon/service/admin/admin_process.h"
#include "log/logger.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::fuzz {

// Formats the audit line of each decision and keeps it.
// Threads: safe.
class DecisionRecorder final : public core::Observer {
 public:
  void Observe(const core::Observation& observation) override;
  // Checks that each line is one JSON object, and that none contains any of the secrets.
  void CheckLines(const std::vector<std::string>& secrets) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ RNICD_GUARDED_BY(mutex_);
};

// Fake of the process around the services, without flags, files or sockets.
class FakeProcess final : public service::ProcessControl {
 public:
  // All arguments must outlive this.
  FakeProcess(core::TenantDirectory& tenants, provider::Provider& provider, std::atomic<bool>& draining)
      : tenants_(tenants), provider_(provider), draining_(draining) {}

  std::string version() const override { return "fuzz"; }
  uint32_t generation() const override { return 1; }
  void OnGrantNarrowed(GrantId /*grant*/, const std::string& /*pod_uid*/) override {}
  std::string metrics_address() const override { return ""; }
  uint64_t connections() const override { return 0; }
  core::Doors* doors() const override { return nullptr; }
  uint64_t device_regions() const override { return provider_.live_regions(); }
  std::vector<health::AdapterHealth> adapters() const override { return {}; }
  std::string policy_file() const override { return ""; }
  absl::StatusOr<std::string> SetLogLevel(std::string_view level) override;
  absl::Status ReloadPolicy() override;
  bool SetDraining(bool draining) override;

 private:
  core::TenantDirectory& tenants_;
  provider::Provider& provider_;
  std::atomic<bool>& draining_;
};

// The daemon from its connections down, real except for the process around it; the fuzzer controls time and randomness.
// Runs the daemon's threads: workers, reapers, and those of the wire and of rings.
// Lifetime: must outlive its connections.
// Threads:  safe.
class FuzzDaemon {
 public:
  FuzzDaemon();

  // A connection of one of the clients that call_script.h names; `client` is its end of the socket.
  std::unique_ptr<door::ServedConnection> Serve(char name, UniqueFd& client);
  void Advance(std::chrono::milliseconds by);
  // Waits until all sessions have ended, and checks that they left nothing.
  void CheckNothingLeft(const std::vector<std::string>& secrets);
  core::SessionRegistry& registry() { return wired_.registry; }

 private:
  FaultyOs os_{SystemOs()};
  ManualClock clock_;
  SeededRandom random_{1};
  const log::Logger logger_;
  provider::SoftProvider soft_;
  DecisionRecorder observer_;
  core::WiredNode wired_;
  // Outlives the workers, which complete what came through rings.
  const SteadyClock steady_clock_;
  std::unique_ptr<rings::RingThreads> rings_;
  // Declared behind the node, so that their threads are joined first.
  core::WorkerPool workers_{1};
  core::WorkerPool reapers_{1};
  FakeProcess process_;
  health::HealthBoard health_;
  std::unique_ptr<server::RpcConnectionServer> server_;
};

}  // namespace rnicd::fuzz
