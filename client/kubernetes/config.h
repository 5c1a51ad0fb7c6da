#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/kubernetes/cluster.h"
#include "client/kubernetes/grant_keeper.h"
#include "client/kubernetes/kubelet_options.h"
#include "client/kubernetes/resource.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

// Everything the plugin can be told, validated.
struct Config {
  std::string admin_socket_dir;
  // Of the workloads' sockets: on the node, and where containers see it.
  std::string socket_dir;
  std::string container_socket_dir;
  KubeletOptions kubelet;
  // Empty: nobody is asked who holds devices, and no grant is revoked for lack of a holder.
  std::string pod_resources_socket;
  // "namespace/name" of the plugin's own pod, see PodResources; empty outside of pods.
  std::string own_pod;
  std::string state_dir;
  std::vector<ResourceSpec> resources;
  // 0: from the daemon's limits and the machine's memory.
  uint64_t pool_bytes = 0;
  GrantOptions grants;
  std::chrono::milliseconds reconcile_interval{0};
  // How long a daemon may be away before devices turn unhealthy, and how long Allocate waits for it.
  std::chrono::milliseconds daemon_patience{0};
  // Empty: containers get a mount.
  std::string cdi_dir;
  // Without a server nobody is asked for UIDs and labels.
  ClusterOptions cluster;
  // Ask the running plugin whether it serves, and end.
  bool probe = false;
  log::Options log;
};

// Reads the flags. Every mistake is reported at once: `errors` gets a line for each, and the config is then not to be
// used.
Config ConfigFromFlags(std::vector<std::string>& errors);

// The API server's address as the kubelet tells it to each container, or nothing outside of a cluster.
std::string ClusterServerFromEnvironment();

}  // namespace rnicd::kubernetes
