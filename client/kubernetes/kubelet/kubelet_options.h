#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "client/kubernetes/resources/resource.h"

namespace rnicd::kubernetes {

struct KubeletOptions {
  // Directory of kubelet.sock and of the plugin's own sockets.
  std::string folder = "/var/lib/kubelet/device-plugins";
  // Prefix of the plugin's socket names: "rnicd-memory-64mi.sock".
  std::string socket_prefix = "rnicd-";
  // Interval of polls when no event arrives.
  std::chrono::milliseconds poll_interval{5'000};
  // Pause before the first retry of a registration, doubled up to poll_interval.
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds register_deadline{10'000};
};

// Path of a resource's socket: "<folder>/rnicd-memory-64mi.sock".
inline std::string SocketPath(const KubeletOptions& options, std::string_view resource) {
  return options.folder + "/" + options.socket_prefix + std::string(TypeOf(resource)) + ".sock";
}

}  // namespace rnicd::kubernetes
