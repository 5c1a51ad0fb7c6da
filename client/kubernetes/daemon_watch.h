#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/kubernetes/daemon.h"
#include "client/kubernetes/device_board.h"
#include "client/kubernetes/resource.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

struct WatchOptions {
  std::vector<ResourceSpec> resources;
  // 0: from the daemon's limits and the machine's memory.
  uint64_t pool_bytes = 0;
  uint64_t machine_bytes = 0;
  // A daemon that is away for no longer changes nothing: it may just be restarting.
  std::chrono::milliseconds patience{0};
};

// Looks at the daemon and puts on the boards which devices there are, and how they are.
// Threads: Look is called by one thread; the boards may be read by any.
class DaemonWatch {
 public:
  // All but the options outlive it.
  DaemonWatch(Daemon& daemon, const Clock& clock, const log::Logger& logger, WatchOptions options);

  struct Seen {
    // It answered.
    bool there = false;
    // It answered, and it is not the one that answered before, or the first one: it knows of no grant.
    bool is_new = false;
  };
  // Asks once.
  Seen Look();

  // The boards say which devices there are: the daemon has answered, and they could be planned.
  bool known() const { return known_; }
  // One for each resource, by its name; empty before.
  const std::map<std::string, std::unique_ptr<DeviceBoard>>& boards() const { return boards_; }
  // Wakes who waits at a board.
  void Close();

 private:
  void Plan(const v1::GetStatusResponse& status, bool serving);
  void SayWhenOthers(const std::string& resource, const std::vector<Device>& devices) const;
  void SayOnce(const std::string& trouble);

  Daemon& daemon_;
  const Clock& clock_;
  const log::Logger& logger_;
  const WatchOptions options_;
  std::map<std::string, std::unique_ptr<DeviceBoard>> boards_;
  // What the daemon said last, and when.
  std::optional<v1::GetStatusResponse> last_;
  Instant last_seen_;
  bool known_ = false;
  // What is wrong, so that it is logged when it changes.
  std::string trouble_;
};

}  // namespace rnicd::kubernetes
