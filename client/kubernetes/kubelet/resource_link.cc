#include "client/kubernetes/kubelet/resource_link.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files/unique_fd.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "client/kubernetes/resources/resource.h"

namespace rnicd::kubernetes {
namespace {

constexpr char kApiVersion[] = "v1beta1";
// A plugin that replaced another one registers once more after this many first_retry pauses.
constexpr int kPausesToConfirm = 20;

// Whether a process accepts connections on the Unix socket at this path. The check opens a connection and closes it.
bool HasListener(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!FitsUnixAddress(path)) {
    return false;
  }
  path.copy(address.sun_path, path.size());
  const UniqueFd asking(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // EAGAIN: a listener exists, and its backlog is full.
  return connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
}

}  // namespace

ResourceLink::ResourceLink(Parts parts, OfferedResource resource)
    : parts_(std::move(parts)),
      resource_(std::move(resource)),
      path_(SocketPath(parts_.options, resource_.name)),
      pause_(parts_.options.first_retry, parts_.options.poll_interval) {}

ResourceLink::Time ResourceLink::Poll(const std::optional<FileIdentity>& kubelet) {
  DetectChange(Now(), kubelet);
  if (!kubelet_.has_value()) {
    return Now() + parts_.options.poll_interval;
  }
  if (!registered() && Now() >= pause_.end()) {
    if (const absl::Status status = TryRegister(); !status.ok()) {
      pause_.Begin(Now());
      LogFailure(status);
    }
  }
  return registered() ? std::min(rival_.confirm_at, Now() + parts_.options.poll_interval) : pause_.end();
}

void ResourceLink::Stop() { Retire(); }

bool ResourceLink::up() const {
  MutexLock lock(mutex_);
  return registered_ && endpoint_->watched();
}

void ResourceLink::DetectChange(Time now, const std::optional<FileIdentity>& kubelet) {
  if (kubelet != kubelet_) {
    // Failures with the old kubelet say nothing about the new one.
    kubelet_ = kubelet;
    pause_.Reset(now);
    Retire();
    return;
  }
  const char* const reason = BrokenReason(now);
  if (reason == nullptr) {
    return;
  }
  parts_.logger.Info("the registration with the kubelet is over", {{"resource", resource_.name}, {"reason", reason}});
  if (now - registered_at_ >= parts_.options.poll_interval) {
    pause_.Reset(now);
  } else {
    pause_.Begin(now);
  }
  Retire();
  rival_.replaced_us = HasListener(path_);
}

const char* ResourceLink::BrokenReason(Time now) const {
  MutexLock lock(mutex_);
  if (!registered_) {
    return nullptr;
  }
  if (!endpoint_->InPlace()) {
    return "the socket was taken away";
  }
  if (now >= rival_.confirm_at) {
    return "an older plugin may have taken it along";
  }
  if (endpoint_->watched()) {
    return nullptr;
  }
  if (watch_ended_.load()) {
    return "the kubelet stopped watching";
  }
  return now - registered_at_ >= parts_.options.poll_interval ? "the kubelet does not watch" : nullptr;
}

absl::Status ResourceLink::TryRegister() {
  bool fresh = false;
  {
    MutexLock lock(mutex_);
    fresh = endpoint_ != nullptr && endpoint_->InPlace() && !endpoint_->watched();
  }
  if (!fresh) {
    Retire();
    if (Now() < pause_.end()) {
      return absl::OkStatus();
    }
    if (const absl::Status status = Serve(); !status.ok()) {
      return status;
    }
  }
  return Register();
}

// The plugin started last wins: it replaces a running plugin, and that one waits until its successor exits. Otherwise
// the two would replace each other endlessly.
absl::Status ResourceLink::Serve() {
  const bool other = HasListener(path_);
  if (other && rival_.replaced_us) {
    return absl::UnavailableError("another plugin serves on " + path_);
  }
  absl::StatusOr<std::unique_ptr<PluginEndpoint>> endpoint =
      PluginEndpoint::Serve(path_, resource_, parts_.allocator, parts_.logger, [this] {
        watch_ended_.store(true);
        parts_.wake();
      });
  if (!endpoint.ok()) {
    return endpoint.status();
  }
  rival_.replaced_us = false;
  rival_.replaced = other;
  MutexLock lock(mutex_);
  endpoint_ = *std::move(endpoint);
  return absl::OkStatus();
}

absl::Status ResourceLink::Register() {
  v1beta1::RegisterRequest request;
  request.set_version(kApiVersion);
  request.set_endpoint(path_.substr(parts_.options.folder.size() + 1));
  request.set_resource_name(resource_.name);
  *request.mutable_options() = PluginService::Options();
  watch_ended_.store(false);
  absl::Status status =
      parts_.registrar.Register(parts_.options.folder + "/kubelet.sock", request, parts_.options.register_deadline);
  if (!status.ok()) {
    return status;
  }
  parts_.logger.Info("registered with the kubelet", {{"resource", resource_.name}, {"socket", request.endpoint()}});
  last_error_.clear();
  registered_at_ = Now();
  // The kubelet mistakes the end of the other plugin's stream, which comes about now, for the end of this registration.
  rival_.confirm_at = rival_.replaced ? registered_at_ + kPausesToConfirm * parts_.options.first_retry : Time::max();
  rival_.replaced = false;
  MutexLock lock(mutex_);
  registered_ = true;
  return absl::OkStatus();
}

// A kubelet that sees a stream end after a new registration takes the new one for ended, so there is a pause between
// the two.
void ResourceLink::Retire() {
  std::unique_ptr<PluginEndpoint> endpoint;
  {
    MutexLock lock(mutex_);
    endpoint.swap(endpoint_);
    registered_ = false;
  }
  if (endpoint != nullptr && endpoint->watched()) {
    endpoint.reset();
    pause_.Extend(Now());
  }
}

bool ResourceLink::registered() const {
  MutexLock lock(mutex_);
  return registered_;
}

// Logs each text once: retries continue for as long as the kubelet refuses. A call cancelled by Stop is not an error.
void ResourceLink::LogFailure(const absl::Status& status) {
  if (!absl::IsCancelled(status) && last_error_ != status.message()) {
    last_error_ = std::string(status.message());
    parts_.logger.Warning("not registered with the kubelet", {{"resource", resource_.name}, {"error", last_error_}});
  }
}

}  // namespace rnicd::kubernetes
