#include "client/kubernetes/kubelet/resource_link.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files/unique_fd.h"
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
  if (path.size() >= sizeof(address.sun_path)) {
    return false;
  }
  path.copy(address.sun_path, path.size());
  const UniqueFd asking(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // EAGAIN: a listener exists, and its backlog is full.
  return connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
}

}  // namespace

ResourceLink::ResourceLink(const KubeletOptions& options, OfferedResource resource, Allocator& allocator,
                           const Clock& clock, const log::Logger& logger, Registrar& registrar,
                           std::function<void()> wake)
    : options_(options),
      resource_(std::move(resource)),
      allocator_(allocator),
      clock_(clock),
      logger_(logger),
      registrar_(registrar),
      wake_(std::move(wake)),
      path_(SocketPath(options, resource_.name)),
      socket_name_(path_.substr(options.folder.size() + 1)),
      pause_(options.first_retry) {}

ResourceLink::Time ResourceLink::Poll(const std::optional<FileIdentity>& kubelet) {
  DetectChange(Now(), kubelet);
  if (!kubelet_.has_value()) {
    return Now() + options_.poll_interval;
  }
  if (!registered() && Now() >= not_before_) {
    if (const absl::Status status = TryRegister(); !status.ok()) {
      PauseFrom(Now());
      LogFailure(status);
    }
  }
  return registered() ? std::min(confirm_at_, Now() + options_.poll_interval) : not_before_;
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
    pause_ = options_.first_retry;
    not_before_ = now;
    Retire();
    return;
  }
  const char* const reason = BrokenReason(now);
  if (reason == nullptr) {
    return;
  }
  logger_.Info("the registration with the kubelet is over", {{"resource", resource_.name}, {"reason", reason}});
  if (now - registered_at_ >= options_.poll_interval) {
    pause_ = options_.first_retry;
    not_before_ = now;
  } else {
    PauseFrom(now);
  }
  Retire();
  yields_ = HasListener(path_);
}

const char* ResourceLink::BrokenReason(Time now) const {
  MutexLock lock(mutex_);
  if (!registered_) {
    return nullptr;
  }
  if (!endpoint_->InPlace()) {
    return "the socket was taken away";
  }
  if (now >= confirm_at_) {
    return "an older plugin may have taken it along";
  }
  if (endpoint_->watched()) {
    return nullptr;
  }
  if (watch_ended_.load()) {
    return "the kubelet stopped watching";
  }
  return now - registered_at_ >= options_.poll_interval ? "the kubelet does not watch" : nullptr;
}

absl::Status ResourceLink::TryRegister() {
  bool fresh = false;
  {
    MutexLock lock(mutex_);
    fresh = endpoint_ != nullptr && endpoint_->InPlace() && !endpoint_->watched();
  }
  if (!fresh) {
    Retire();
    if (Now() < not_before_) {
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
  if (other && yields_) {
    return absl::UnavailableError("another plugin serves on " + path_);
  }
  absl::StatusOr<std::unique_ptr<PluginEndpoint>> endpoint =
      PluginEndpoint::Serve(path_, resource_, allocator_, logger_, [this] {
        watch_ended_.store(true);
        wake_();
      });
  if (!endpoint.ok()) {
    return endpoint.status();
  }
  yields_ = false;
  took_over_ = other;
  MutexLock lock(mutex_);
  endpoint_ = *std::move(endpoint);
  return absl::OkStatus();
}

absl::Status ResourceLink::Register() {
  v1beta1::RegisterRequest request;
  request.set_version(kApiVersion);
  request.set_endpoint(socket_name_);
  request.set_resource_name(resource_.name);
  *request.mutable_options() = PluginService::Options();
  watch_ended_.store(false);
  absl::Status status = registrar_.Register(options_.folder + "/kubelet.sock", request, options_.register_deadline);
  if (!status.ok()) {
    return status;
  }
  logger_.Info("registered with the kubelet", {{"resource", resource_.name}, {"socket", socket_name_}});
  last_error_.clear();
  registered_at_ = Now();
  // The kubelet mistakes the end of the other plugin's stream, which comes about now, for the end of this registration.
  confirm_at_ = took_over_ ? registered_at_ + kPausesToConfirm * options_.first_retry : Time::max();
  took_over_ = false;
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
    not_before_ = std::max(not_before_, Now() + options_.first_retry);
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
    logger_.Warning("not registered with the kubelet", {{"resource", resource_.name}, {"error", last_error_}});
  }
}

void ResourceLink::PauseFrom(Time now) {
  not_before_ = now + pause_;
  pause_ = std::min(pause_ * 2, options_.poll_interval);
}

}  // namespace rnicd::kubernetes
