#pragma once

#include <atomic>
#include <chrono>
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
#include "client/kubernetes/resources/device_board.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// One resource's part of KubeletLink. It decides only by the current state of socket and kubelet, so events need not be
// accurate, only prompt. Lifetime: the constructor's arguments must outlive it. Threads: one; up() from any.
class ResourceLink {
 public:
  using Time = Instant;

  // `wake` requests a Poll, from any thread.
  ResourceLink(const KubeletOptions& options, OfferedResource resource, Allocator& allocator, const Clock& clock,
               const log::Logger& logger, Registrar& registrar, std::function<void()> wake);

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
  // Also OK when it must wait until not_before_ first.
  absl::Status TryRegister();
  absl::Status Serve();
  absl::Status Register();
  void Retire();
  bool registered() const;
  void LogFailure(const absl::Status& status);
  void PauseFrom(Time now);
  Time Now() const { return clock_.Now(); }

  const KubeletOptions& options_;
  const OfferedResource resource_;
  Allocator& allocator_;
  const Clock& clock_;
  const log::Logger& logger_;
  Registrar& registrar_;
  const std::function<void()> wake_;
  const std::string path_;
  const std::string socket_name_;

  // Used by the polling thread only, as are the members up to mutex_, except watch_ended_.
  std::optional<FileIdentity> kubelet_;
  Time registered_at_;
  Time not_before_;
  std::chrono::milliseconds pause_;
  std::string last_error_;
  // Another plugin replaced this plugin's socket.
  bool yields_ = false;
  // This plugin replaced the socket of another running plugin, and has not registered since.
  bool took_over_ = false;
  Time confirm_at_ = Time::max();
  std::atomic<bool> watch_ended_{false};

  mutable Mutex mutex_;
  // Changed only by the polling thread.
  std::unique_ptr<PluginEndpoint> endpoint_ RNICD_GUARDED_BY(mutex_);
  bool registered_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::kubernetes
