#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "tests/kubernetes/kubelet/device_book.h"
#include "tests/kubernetes/kubelet/kubelet.h"
#include "tests/kubernetes/kubelet/plugin_client.h"

namespace rnicd::test {

// The kubelet's device manager: endpoints of plugins, devices, pods. Its error texts are the kubelet's.
// Threads: safe; one Admit at a time.
class DeviceManager {
 public:
  explicit DeviceManager(const KubeletSettings& settings);
  // Drops the state that dies with the kubelet and reads the checkpoint.
  void Start();
  // Ends all streams and waits for them. Afterwards no health is changed and no checkpoint is written.
  void Stop();

  // Called during Register. Errors: Register fails with them.
  absl::Status Connect(const std::string& resource, const std::string& socket);
  void DropStreams(const std::string& resource);
  size_t Streams(const std::string& resource) const;

  std::optional<Kubelet::Amounts> NodeStatus(const std::string& resource);
  std::vector<v1beta1::Device> Devices(const std::string& resource) const;
  void Advance(std::chrono::milliseconds time);

  absl::Status Admit(const Pod& pod);
  // Admits a known pod once more, as a kubelet that has just started does.
  absl::Status Readmit(const std::string& pod_uid);
  // No container runs any more.
  void StopContainers();
  // Removes the checkpoint, which a running kubelet would write again.
  void LoseCheckpoint();
  absl::StatusOr<RunOptions> StartContainer(const std::string& pod_uid, const std::string& container);
  void Remove(const std::string& pod_uid);
  std::map<std::string, Allocation> Of(const std::string& pod_uid, const std::string& container) const;
  std::vector<Pod> pods() const;
  std::vector<std::string> calls() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Ids = DeviceBook::Ids;
  using IdsByResource = std::map<std::string, Ids>;
  struct Endpoint {
    // Null after a restart, until the plugin registers.
    std::shared_ptr<PluginClient> client;
    v1beta1::DevicePluginOptions options;
    std::optional<Time> stopped;
  };

  struct Run {
    bool running = false;
    // Earliest time of the next attempt, and the pause after the next failure.
    Time not_before;
    std::chrono::seconds pause{10};
  };

  void Watch(PluginClient& client);
  void WatchEnded(const PluginClient& client);
  // Removes from the list and returns the first connection to the same socket, whichever that is.
  std::shared_ptr<PluginClient> TakeConnection(const PluginClient& like) RNICD_REQUIRES(mutex_);
  absl::Status AdmitContainers(const Pod& pod);
  absl::Status AllocateContainer(const Pod& pod, const Container& container, const IdsByResource& reusable);
  absl::StatusOr<Ids> Choose(const Pod& pod, const Container& container, const std::string& resource, size_t required,
                             const Ids& reusable);
  absl::StatusOr<Ids> Prefer(const std::string& resource, const Ids& available, const Ids& must_include, size_t size);
  absl::Status AllocateResource(const Pod& pod, const Container& container, const std::string& resource,
                                const Ids& ids);
  absl::StatusOr<RunOptions> PrepareContainer(const std::string& pod_uid, const std::string& container);
  std::vector<std::string> ResourcesOf(const std::string& pod_uid, const std::string& container) const;
  bool IsRunning(const Pod& pod, const Container& container) const;
  void Record(const std::string& call);
  absl::Status PreStart(const std::string& resource, const Ids& ids);
  absl::StatusOr<Endpoint> RunningEndpoint(const std::string& resource) const;
  void WriteCheckpoint() const RNICD_REQUIRES(mutex_);
  Time Now() const RNICD_REQUIRES(mutex_) { return std::chrono::steady_clock::now() + ahead_; }

  const KubeletSettings settings_;
  const std::string checkpoint_;
  mutable Mutex mutex_;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  std::chrono::milliseconds ahead_ RNICD_GUARDED_BY(mutex_){0};
  DeviceBook book_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, Endpoint> endpoints_ RNICD_GUARDED_BY(mutex_);
  // Endpoints by resource, in order of registration.
  std::map<std::string, std::vector<std::shared_ptr<PluginClient>>> connections_ RNICD_GUARDED_BY(mutex_);
  // Every connection since Start: Stop joins their threads.
  std::vector<std::shared_ptr<PluginClient>> clients_ RNICD_GUARDED_BY(mutex_);
  // Keyed by pod and container.
  std::map<std::pair<std::string, std::string>, Run> runs_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ RNICD_GUARDED_BY(mutex_);
  bool is_reversed_ RNICD_GUARDED_BY(mutex_) = false;
  std::map<std::string, Pod> pods_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::test
