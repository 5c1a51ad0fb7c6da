#include "tests/kubernetes/kubelet/device_manager.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace rnicd::test {

DeviceManager::DeviceManager(const KubeletSettings& settings)
    : settings_(settings), checkpoint_(settings.folder + "/kubelet_internal_checkpoint") {}

void DeviceManager::Start() {
  MutexLock lock(mutex_);
  running_ = true;
  book_ = DeviceBook();
  endpoints_.clear();
  if (std::ifstream file(checkpoint_); file) {
    std::ostringstream text;
    text << file.rdbuf();
    book_ = DeviceBook::FromCheckpoint(text.str());
  }
  // Plugins have the usual grace to register again.
  for (const std::string& resource : book_.Resources()) {
    endpoints_[resource].stopped = Now();
  }
}

void DeviceManager::Stop() {
  std::vector<std::shared_ptr<PluginClient>> clients;
  {
    MutexLock lock(mutex_);
    running_ = false;
    clients.swap(clients_);
    connections_.clear();
    endpoints_.clear();
  }
  // Joins the threads without the lock, which they acquire.
  clients.clear();
}

absl::Status DeviceManager::Connect(const std::string& resource, const std::string& socket) {
  const auto client = std::make_shared<PluginClient>(resource, socket);
  {
    MutexLock lock(mutex_);
    clients_.push_back(client);
    connections_[resource].push_back(client);
  }
  const absl::StatusOr<v1beta1::DevicePluginOptions> options = client->Connect(settings_.dial_deadline);
  MutexLock lock(mutex_);
  if (!options.ok()) {
    TakeConnection(*client);
    return options.status();
  }
  if (running_) {
    endpoints_[resource] = Endpoint{.client = client, .options = *options, .stopped = std::nullopt};
    Watch(*client);
  }
  return absl::OkStatus();
}

void DeviceManager::Watch(PluginClient& client) {
  client.Watch(
      [this, &client](const v1beta1::ListAndWatchResponse& all) {
        MutexLock lock(mutex_);
        if (running_) {
          book_.Update(client.resource(), all);
          WriteCheckpoint();
        }
      },
      [this, &client] { WatchEnded(client); });
}

// As the real kubelet: it matches by the names of socket and resource, and so may mistake a newer connection for the
// one that ended.
void DeviceManager::WatchEnded(const PluginClient& client) {
  MutexLock lock(mutex_);
  const std::shared_ptr<PluginClient> taken = TakeConnection(client);
  if (!running_ || taken == nullptr) {
    return;
  }
  taken->Disconnect();
  if (const auto endpoint = endpoints_.find(client.resource()); endpoint != endpoints_.end()) {
    book_.MarkUnhealthy(client.resource());
    endpoint->second.stopped = Now();
  }
}

std::shared_ptr<PluginClient> DeviceManager::TakeConnection(const PluginClient& like) {
  auto& connections = connections_[like.resource()];
  const auto found = std::find_if(connections.begin(), connections.end(),
                                  [&like](const auto& client) { return client->socket() == like.socket(); });
  if (found == connections.end()) {
    return nullptr;
  }
  std::shared_ptr<PluginClient> taken = *found;
  connections.erase(found);
  return taken;
}

void DeviceManager::DropStreams(const std::string& resource) {
  MutexLock lock(mutex_);
  for (const auto& client : connections_[resource]) {
    client->Cancel();
  }
}

size_t DeviceManager::Streams(const std::string& resource) const {
  MutexLock lock(mutex_);
  const auto found = connections_.find(resource);
  return found == connections_.end() ? 0 : found->second.size();
}

std::optional<Kubelet::Amounts> DeviceManager::NodeStatus(const std::string& resource) {
  MutexLock lock(mutex_);
  const auto endpoint = endpoints_.find(resource);
  if (endpoint == endpoints_.end() || !book_.Knows(resource)) {
    return std::nullopt;
  }
  if (endpoint->second.stopped.has_value() && Now() - *endpoint->second.stopped > settings_.endpoint_grace) {
    endpoints_.erase(endpoint);
    book_.Forget(resource);
    WriteCheckpoint();
    return std::nullopt;
  }
  return Kubelet::Amounts{.capacity = book_.Devices(resource).size(), .allocatable = book_.Healthy(resource).size()};
}

std::vector<v1beta1::Device> DeviceManager::Devices(const std::string& resource) const {
  MutexLock lock(mutex_);
  return book_.Devices(resource);
}

void DeviceManager::Advance(std::chrono::milliseconds time) {
  MutexLock lock(mutex_);
  ahead_ += time;
}

void DeviceManager::Remove(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  pods_.erase(pod_uid);
  std::erase_if(runs_, [&](const auto& run) { return run.first.first == pod_uid; });
  book_.Remove(pod_uid);
  if (running_) {
    WriteCheckpoint();
  }
}

std::map<std::string, Allocation> DeviceManager::Of(const std::string& pod_uid, const std::string& container) const {
  MutexLock lock(mutex_);
  return book_.Of(pod_uid, container);
}

std::vector<Pod> DeviceManager::pods() const {
  MutexLock lock(mutex_);
  std::vector<Pod> pods;
  for (const auto& [uid, pod] : pods_) {
    pods.push_back(pod);
  }
  return pods;
}

std::vector<std::string> DeviceManager::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

void DeviceManager::StopContainers() {
  MutexLock lock(mutex_);
  runs_.clear();
}

void DeviceManager::LoseCheckpoint() {
  std::error_code ignored;
  std::filesystem::remove(checkpoint_, ignored);
}

void DeviceManager::WriteCheckpoint() const {
  const std::string written = checkpoint_ + ".tmp";
  std::ofstream(written) << book_.ToCheckpoint();
  std::error_code ignored;
  std::filesystem::rename(written, checkpoint_, ignored);
}

}  // namespace rnicd::test
