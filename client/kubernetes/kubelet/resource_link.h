#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "client/kubernetes/kubelet/allocator.h"
#include "client/kubernetes/kubelet/file_identity.h"
#include "client/kubernetes/kubelet/kubelet_options.h"
#include "client/kubernetes/kubelet/plugin_endpoint.h"
#include "client/kubernetes/kubelet/registrar.h"
#include "client/kubernetes/kubelet/retry_pause.h"
#include "client/kubernetes/resources/device_board.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// One resource's part of KubeletLink. It decides only by the current state of socket and kubelet, so events need not be
// accurate, only prompt.
// Lifetime: the parts outlive it.
// Threads:  one; up() from any.
class ResourceLink {
 public:
  using Time = Instant;

  // What the links of all resources share.
  struct Parts {
    const KubeletOptions& options;
    Allocator& allocator;
    const Clock& clock;
    const log::Logger& logger;
    Registrar& registrar;
    // Requests a Poll, from any thread.
    std::function<void()> wake;
  };

  ResourceLink(Parts parts, OfferedResource resource);

  // Path of the resource's socket.
  const std::string& path() const { return path_; }
  // Serves and registers, if that is needed and due. `kubelet` is the identity of kubelet.sock. Returns when to poll
  // again if no event arrives.
  Time Poll(const std::optional<FileIdentity>& kubelet);
  void Stop();
  // Whether the resource is registered and the kubelet is watching.
  bool up() const;

 private:
  void DetectChange(Time now, const std::optional<FileIdentity>& kubelet);
  // Why the registration no longer holds; null while it does.
  const char* BrokenReason(Time now) const;
  // Also OK when it must wait for the end of the pause first.
  absl::Status TryRegister();
  absl::Status Serve();
  absl::Status Register();
  void Retire();
  bool registered() const;
  void LogFailure(const absl::Status& status);
  Time Now() const { return parts_.clock.Now(); }

  // What is known of another plugin with the same socket.
  struct Rival {
    // It replaced this plugin's socket.
    bool replaced_us = false;
    // This plugin replaced the socket of the other while that one ran, and has not registered since.
    bool replaced = false;
    // When to register once more, because the other may have taken this registration along.
    Time confirm_at = Time::max();
  };

  const Parts parts_;
  const OfferedResource resource_;
  const std::string path_;

  // Used by the polling thread only, as are the members up to mutex_, except watch_ended_.
  std::optional<FileIdentity> kubelet_;
  Time registered_at_;
  RetryPause pause_;
  std::string last_error_;
  Rival rival_;
  std::atomic<bool> watch_ended_{false};

  mutable Mutex mutex_;
  // Changed only by the polling thread.
  std::unique_ptr<PluginEndpoint> endpoint_ RNICD_GUARDED_BY(mutex_);
  bool registered_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::kubernetes
