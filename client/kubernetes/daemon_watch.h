#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/kubernetes/grants/daemon.h"
#include "client/kubernetes/resources/device_board.h"
#include "client/kubernetes/resources/resource.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

struct WatchOptions {
  std::vector<ResourceSpec> resources;
  // Size of the pool in bytes; 0: derived from the daemon's limits and the machine's memory.
  uint64_t pool_bytes = 0;
  uint64_t machine_bytes = 0;
  // Devices stay as they are while the daemon is away for at most this long: it may just be restarting.
  std::chrono::milliseconds timeout{0};
};

// Polls the daemon and publishes the devices and their health on the boards.
// Threads: one thread calls Poll; any thread may read the boards and call OfferedBytes.
class DaemonWatch {
 public:
  // Everything except the options must outlive the watch.
  DaemonWatch(Daemon& daemon, const Clock& clock, const log::Logger& logger, WatchOptions options);

  struct PollResult {
    // The daemon responded.
    bool reachable = false;
    // The daemon responded and is not the process that responded last, or is the first to respond: it has no grants.
    bool is_new = false;
  };
  // Sends one status request.
  PollResult Poll();

  // True once the daemon has responded and its devices could be planned: the boards then hold them.
  bool known() const { return known_; }
  // Why the devices could not be planned by the daemon's last response; it is the flags' fault.
  const absl::Status& plan_error() const { return plan_error_; }
  // One board for each resource, keyed by its name; a board is empty until known().
  const std::map<std::string, std::unique_ptr<DeviceBoard>>& boards() const { return boards_; }
  // Bytes of those of these devices that the node offers; nothing while that is unknown, and for a resource of others.
  std::optional<uint64_t> OfferedBytes(const std::string& resource, const std::vector<std::string>& device_ids) const;
  // Wakes every thread that waits on a board.
  void Close();

 private:
  void Plan(const v1::GetStatusResponse& status, bool serving);
  void LogDeviceChange(const std::string& resource, const std::vector<Device>& devices) const;
  void LogOnChange(const std::string& trouble);

  Daemon& daemon_;
  const Clock& clock_;
  const log::Logger& logger_;
  const WatchOptions options_;
  std::map<std::string, std::unique_ptr<DeviceBoard>> boards_;
  // The daemon's last response, and its time.
  std::optional<v1::GetStatusResponse> last_;
  Instant last_seen_;
  bool known_ = false;
  absl::Status plan_error_;
  // Current problem, or empty; kept so that it is logged only when it changes.
  std::string trouble_;
};

}  // namespace rnicd::kubernetes
