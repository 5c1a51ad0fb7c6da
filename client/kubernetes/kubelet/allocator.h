#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// What a container receives together with its devices: the directory of its sockets, mounted read-only, and its path in
// RNICD_SOCKET_DIR.
struct ContainerAllocation {
  std::string container_path;
  std::string host_path;
};

// Decides what containers get. An interface, because the conversation with a kubelet is tested without daemon and
// grants (plugin_service_test.cc, tests/kubernetes/plugin.h), and so that this room knows of neither.
// Threads: safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Handles one container. Waits a short time for a daemon that is away. Errors: text for people; the kubelet fails the
  // pod with it.
  virtual absl::StatusOr<ContainerAllocation> Allocate(const std::string& resource,
                                                       const std::vector<std::string>& device_ids) = 0;
  // Runs before each start of a container with these devices. On an error the kubelet does not start the container.
  virtual absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) = 0;
  // Runs when a kubelet begins to watch the devices of a resource. It may be another process than before, and may have
  // started containers without Prepare while it did not know the plugin.
  virtual void KubeletConnected() = 0;
  // Devices that containers may have although the kubelet takes them for free. Does not wait.
  virtual std::set<std::string> DevicesToAvoid(const std::string& resource) = 0;
  // Returns when Allocate could begin; does not return while something holds it up.
  virtual void AwaitTurn() = 0;
};

}  // namespace rnicd::kubernetes
