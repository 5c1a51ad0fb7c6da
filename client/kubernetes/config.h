#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/kubernetes/grants/grant_keeper.h"
#include "client/kubernetes/kubelet/kubelet_options.h"
#include "client/kubernetes/node/cluster.h"
#include "client/kubernetes/resources/resource.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// The plugin's configuration, validated.
struct Config {
  std::string admin_socket_dir;
  // Directory of the doors on the node, and the path of a container's own door inside the container.
  std::string door_dir;
  std::string container_socket_dir;
  KubeletOptions kubelet;
  // Empty: the kubelet is not asked which containers hold devices, and no grant is revoked for lack of a holder.
  std::string pod_resources_socket;
  // "namespace/name" of the plugin's own pod, see PodResources; empty outside of pods.
  std::string own_pod;
  std::string state_dir;
  std::vector<ResourceSpec> resources;
  // Size of the pool in bytes; 0: derived from the daemon's limits and the machine's memory.
  uint64_t pool_bytes = 0;
  GrantOptions grants;
  std::chrono::milliseconds reconcile_interval{0};
  // How long the daemon may be away before devices turn unhealthy, how long Allocate retries, and, but for a lower
  // limit, how long a call may take.
  std::chrono::milliseconds daemon_timeout{0};
  // Without a server, pods have no UIDs and labels.
  ClusterOptions cluster;
  // Check whether the running plugin serves, and exit.
  bool probe = false;
  log::Options log;
};

// Reads the flags. Reports every mistake at once: `errors` gets a line for each, and the config must then not be used.
Config ConfigFromFlags(std::vector<std::string>& errors);

// The API server's address from the environment that the kubelet sets for each container; empty outside of a cluster.
std::string ClusterServerFromEnvironment();

}  // namespace rnicd::kubernetes
