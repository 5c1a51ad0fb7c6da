#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/secrets/random.h"
#include "client/kubernetes/admin_daemon.h"
#include "client/kubernetes/config.h"
#include "client/kubernetes/container_allocator.h"
#include "client/kubernetes/daemon_watch.h"
#include "client/kubernetes/grants/grant_file.h"
#include "client/kubernetes/grants/grant_keeper.h"
#include "client/kubernetes/kubelet/kubelet_link.h"
#include "client/kubernetes/upkeep.h"
#include "log/library_log/library_log.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// The device plugin of a node: makes and connects the parts.
// Threads: one thread calls Start and Stop.
class Plugin {
 public:
  // `on_failure` is called once, by a thread of the plugin: the resources of the flags do not fit into the pool, so the
  // plugin has nothing to offer.
  Plugin(Config config, std::function<void(const absl::Status&)> on_failure);
  // Calls Stop.
  ~Plugin();

  // Errors, with text for people: a state directory or a grants.json that cannot be used. A grants.json that cannot be
  // parsed was moved aside, and is no error. Sockets are made later: what keeps them away is logged.
  absl::Status Start();
  // Grants, and the pods that hold them, are not affected.
  void Stop();

  const log::Logger& logger() const { return logger_; }

 private:
  const Config config_;
  const std::function<void(const absl::Status&)> on_failure_;
  const log::Logger logger_;
  const SteadyClock clock_;
  library_log::LibraryLog library_log_{logger_, clock_};
  const std::unique_ptr<RandomSource> random_;
  AdminDaemon daemon_;
  GrantFile file_;
  GrantKeeper keeper_;
  DaemonWatch watch_;
  ContainerAllocator allocator_;
  // Upkeep starts it after the daemon's first response: before that the devices are unknown.
  std::unique_ptr<KubeletLink> link_;
  std::unique_ptr<Upkeep> upkeep_;
};

// Checks through the plugin's own sockets that an allocation of each resource could begin, within a few seconds in all.
// Errors: the resource of which no allocation is served, its socket, and the reason.
absl::Status ProbePlugin(const Config& config);

}  // namespace rnicd::kubernetes
