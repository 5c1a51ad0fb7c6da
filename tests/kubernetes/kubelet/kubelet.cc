#include "tests/kubernetes/kubelet/kubelet.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/mutex.h"
#include "tests/kubernetes/kubelet/device_manager.h"
#include "tests/kubernetes/kubelet/services.h"
#include "tests/kubernetes/kubelet/socket_server.h"

namespace rnicd::test {
namespace {

// Removes only sockets, and follows no symbolic link.
void WipeSockets(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (std::filesystem::is_socket(entry.symlink_status())) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

class Kubelet::Impl {
 public:
  explicit Impl(KubeletSettings settings)
      : settings_(std::move(settings)),
        manager_(settings_),
        registration_(manager_, settings_.folder),
        pod_resources_(manager_) {}

  void Start() {
    MutexLock lock(mutex_);
    std::error_code ignored;
    std::filesystem::create_directories(settings_.folder, ignored);
    chmod(settings_.folder.c_str(), 0750);
    WipeSockets(settings_.folder);
    manager_.Start();
    registration_server_ = std::make_unique<SocketServer>(settings_.folder + "/kubelet.sock", registration_);
    if (!settings_.pod_resources_socket.empty()) {
      pod_resources_server_ = std::make_unique<SocketServer>(settings_.pod_resources_socket, pod_resources_);
    }
  }

  void Stop() {
    MutexLock lock(mutex_);
    registration_server_.reset();
    pod_resources_server_.reset();
    manager_.Stop();
  }

  DeviceManager& manager() { return manager_; }
  RegistrationService& registration() { return registration_; }
  PodResourcesService& pod_resources() { return pod_resources_; }

 private:
  const KubeletSettings settings_;
  DeviceManager manager_;
  RegistrationService registration_;
  PodResourcesService pod_resources_;
  Mutex mutex_;
  std::unique_ptr<SocketServer> registration_server_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<SocketServer> pod_resources_server_ RNICD_GUARDED_BY(mutex_);
};

Kubelet::Kubelet(KubeletSettings settings) : impl_(std::make_unique<Impl>(std::move(settings))) {}

Kubelet::~Kubelet() { Stop(); }

void Kubelet::Start() { impl_->Start(); }

void Kubelet::Stop() { impl_->Stop(); }

std::optional<Kubelet::Amounts> Kubelet::NodeStatus(const std::string& resource) {
  return impl_->manager().NodeStatus(resource);
}

std::vector<v1beta1::Device> Kubelet::Devices(const std::string& resource) const {
  return impl_->manager().Devices(resource);
}

std::vector<Registration> Kubelet::registrations() const { return impl_->registration().registrations(); }

size_t Kubelet::Streams(const std::string& resource) const { return impl_->manager().Streams(resource); }

size_t Kubelet::pod_lists() const { return impl_->pod_resources().lists(); }

absl::Status Kubelet::Admit(const Pod& pod) { return impl_->manager().Admit(pod); }

absl::Status Kubelet::Readmit(const std::string& pod_uid) { return impl_->manager().Readmit(pod_uid); }

void Kubelet::StopNode() {
  Stop();
  impl_->manager().StopContainers();
}

void Kubelet::LoseCheckpoint() { impl_->manager().LoseCheckpoint(); }

std::vector<std::string> Kubelet::calls() const { return impl_->manager().calls(); }

absl::StatusOr<RunOptions> Kubelet::StartContainer(const std::string& pod_uid, const std::string& container) {
  return impl_->manager().StartContainer(pod_uid, container);
}

void Kubelet::Remove(const std::string& pod_uid) { impl_->manager().Remove(pod_uid); }

std::vector<std::string> Kubelet::Held(const std::string& pod_uid, const std::string& container,
                                       const std::string& resource) const {
  const std::map<std::string, Allocation> held = impl_->manager().Of(pod_uid, container);
  const auto found = held.find(resource);
  if (found == held.end()) {
    return {};
  }
  return std::vector<std::string>(found->second.device_ids.begin(), found->second.device_ids.end());
}

void Kubelet::Advance(std::chrono::milliseconds time) { impl_->manager().Advance(time); }

void Kubelet::RefuseRegistrations(const std::string& error) { impl_->registration().Refuse(error); }

void Kubelet::DropStreams(const std::string& resource) { impl_->manager().DropStreams(resource); }

void Kubelet::SetPodResourcesAway(bool away) { impl_->pod_resources().SetAway(away); }

}  // namespace rnicd::test
