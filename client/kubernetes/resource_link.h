#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/kubernetes/allocator.h"
#include "client/kubernetes/file_identity.h"
#include "client/kubernetes/kubelet_options.h"
#include "client/kubernetes/offered_resource.h"
#include "client/kubernetes/plugin_endpoint.h"
#include "client/kubernetes/registrar.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

// One resource's part of KubeletLink. It looks at what is there and decides by that alone, so that no event is needed
// to be right, only to be quick. Lifetime: what it is given outlives it. Threads: one; up() from any.
class ResourceLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `wake` asks for a Look from any thread.
  ResourceLink(const KubeletOptions& options, OfferedResource resource, Allocator& allocator, const log::Logger& logger,
               Registrar& registrar, std::function<void()> wake);

  // Where the resource's socket is.
  const std::string& path() const { return path_; }
  // Serves and registers, if that is needed and due. `kubelet`: what stands at kubelet.sock. Answers when it wants to
  // look again even if nothing is heard.
  Time Look(const std::optional<FileIdentity>& kubelet);
  void Stop();
  // Registered, and the kubelet watches.
  bool up() const;

 private:
  void Notice(Time now, const std::optional<FileIdentity>& kubelet);
  // Why a registration does not hold any more; nothing while it does.
  const char* Broken(Time now) const;
  // Ok also when it must wait until not_before_ first.
  absl::Status Try();
  absl::Status Serve();
  absl::Status Register();
  void Retire();
  bool registered() const;
  void Complain(const absl::Status& status);
  void PauseFrom(Time now);

  const KubeletOptions& options_;
  const OfferedResource resource_;
  Allocator& allocator_;
  const log::Logger& logger_;
  Registrar& registrar_;
  const std::function<void()> wake_;
  const std::string path_;
  const std::string socket_name_;

  // Of the looking thread.
  std::optional<FileIdentity> kubelet_;
  Time registered_at_;
  Time not_before_;
  std::chrono::milliseconds pause_;
  std::string last_error_;
  // Another plugin took the socket's place.
  bool gives_way_ = false;
  // This one took the place of another plugin that ran, and has not registered since.
  bool took_over_ = false;
  Time confirm_at_ = Time::max();
  std::atomic<bool> watch_ended_{false};

  mutable Mutex mutex_;
  // Changed only by the looking thread.
  std::unique_ptr<PluginEndpoint> endpoint_ RNICD_GUARDED_BY(mutex_);
  bool registered_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::kubernetes
