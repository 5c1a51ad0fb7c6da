#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/kubernetes/allocator.h"
#include "client/kubernetes/kubelet_options.h"
#include "client/kubernetes/offered_resource.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

// Serves every resource on a socket of its own and keeps it registered with the kubelet: serves first and registers
// then, and does both again when the kubelet was born again (a new kubelet.sock), when a socket of ours was wiped, or
// when the kubelet stopped watching. Without a kubelet.sock nothing is served. One thread watches the folder
// (inotify, and a slow look besides). Of two plugins with the same sockets the one that came last serves; the other
// keeps off until that one is gone.
// Lifetime: boards, allocator and logger outlive it. Threads: safe.
class KubeletLink {
 public:
  KubeletLink(KubeletOptions options, std::vector<OfferedResource> resources, Allocator& allocator,
              const log::Logger& logger);
  // Stops.
  ~KubeletLink();

  // The folder need not exist yet. Errors: a socket's path that is too long, or that two resources have.
  absl::Status Start();
  // Takes the sockets away, unless another plugin has replaced them. Returns when no call runs any more.
  void Stop();

  // Every resource is registered, and the kubelet watches it.
  bool registered() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rnicd::kubernetes
