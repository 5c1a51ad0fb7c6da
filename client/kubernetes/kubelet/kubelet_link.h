#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/kubernetes/kubelet/allocator.h"
#include "client/kubernetes/kubelet/kubelet_options.h"
#include "client/kubernetes/resources/device_board.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// Serves every resource on its own socket and keeps it registered with the kubelet: serves first and registers then,
// and repeats both when the kubelet restarted (a new kubelet.sock), when one of the sockets was removed, or when the
// kubelet stopped watching. Without a kubelet.sock nothing is served. One thread watches the folder (inotify, plus a
// slow poll). When two plugins use the same sockets, the one started last serves; the other waits until that one has
// exited.
// Lifetime: boards, allocator and logger outlive it.
// Threads:  safe.
class KubeletLink {
 public:
  KubeletLink(KubeletOptions options, std::vector<OfferedResource> resources, Allocator& allocator,
              const log::Logger& logger);
  // Calls Stop.
  ~KubeletLink();

  // The folder need not exist yet. Errors: a socket path that is too long, or that two resources share.
  absl::Status Start();
  // Removes the sockets, unless another plugin has replaced them. Returns when no call is running any more.
  void Stop();

  // Every resource is registered, and the kubelet watches it.
  bool registered() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rnicd::kubernetes
