#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "daemon/sandbox/sandbox.h"
#include "provider/verbs/card/verbs_options.h"

namespace rnicd::handover {
class Predecessor;
}  // namespace rnicd::handover

namespace rnicd::app {

// Any user may search the workload directory; only the daemon's own user that of the operator.
inline constexpr mode_t kWorkloadDirectoryMode = 0755;
inline constexpr mode_t kOperatorDirectoryMode = 0700;
// A container's root that saw the door of another could enter as that.
inline constexpr mode_t kDoorDirectoryMode = 0700;

// The part of the configuration that only Linux has.
struct SystemConfig {
  // Directories of the sockets for workloads and for operators, and of the doors of grants.
  std::string socket_dir;
  std::string admin_socket_dir;
  std::string door_dir;
  // Directory of the socket where a newer generation takes over.
  std::string handover_dir;
  // The longest that this one goes on for its sessions after that.
  std::chrono::milliseconds handover_deadline{0};
  // The generation to take over from; null if there is none. Found by the host, before the sandbox.
  std::shared_ptr<handover::Predecessor> predecessor;
  mode_t socket_mode = 0666;
  // Folder of the daemons whose soft cards are on one network; empty: this one is alone.
  std::string soft_network;
  sandbox::SandboxOptions sandbox;
  provider::VerbsOptions verbs;
};

}  // namespace rnicd::app
