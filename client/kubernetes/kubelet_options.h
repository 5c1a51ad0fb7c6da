#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace rnicd::kubernetes {

struct KubeletOptions {
  // Where kubelet.sock is, and where the plugin's own sockets go.
  std::string folder = "/var/lib/kubelet/device-plugins";
  // Begins the names of the plugin's sockets: "rnicd-memory-64mi.sock".
  std::string socket_prefix = "rnicd-";
  // How often everything is looked at even if nothing is heard.
  std::chrono::milliseconds look_interval{5'000};
  // Between tries to register, doubled up to look_interval.
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds register_deadline{10'000};
};

// Where a resource's socket is: "<folder>/rnicd-memory-64mi.sock".
std::string SocketPath(const KubeletOptions& options, std::string_view resource);

}  // namespace rnicd::kubernetes
