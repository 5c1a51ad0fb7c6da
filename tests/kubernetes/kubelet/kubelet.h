#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kubelet/v1beta1/device_plugin.pb.h"
#include "tests/kubernetes/kubelet/pod.h"

namespace rnicd::test {

struct KubeletSettings {
  // Directory of kubelet.sock, the plugins' sockets and the checkpoint.
  std::string folder;
  // Socket of the pod resources API; empty: not served.
  std::string pod_resources_socket;
  // Time after which a resource without a plugin is removed.
  std::chrono::milliseconds endpoint_grace{300'000};
  // Timeout of the call to the plugin during Register.
  std::chrono::milliseconds dial_deadline{10'000};
  std::chrono::milliseconds pre_start_deadline{30'000};
};

// A call of Register.
struct Registration {
  std::string resource;
  std::string endpoint;
  // Error of the call; empty when it was accepted.
  std::string error;
};

// The allocation that a container runs with.
struct RunOptions {
  std::map<std::string, std::string> environment;
  std::vector<v1beta1::Mount> mounts;
};

// A stand-in for the kubelet, as seen by device plugins; README.md describes what it models. State that the API server
// would keep (the pods) survives a restart in this object; the kubelet's own state survives only in its checkpoint.
// Lifetime: the destructor stops it.
// Threads:  safe; pods are admitted one after the other.
class Kubelet {
 public:
  // Call Start first.
  explicit Kubelet(KubeletSettings settings);
  ~Kubelet();

  // Removes all sockets in the folder, reads the checkpoint and serves.
  void Start();
  // Acts as killed: streams end, its own sockets remain without a listener, no plugin's socket is touched.
  void Stop();

  // Capacity and allocatable devices of a resource in the node's status.
  struct Amounts {
    size_t capacity = 0;
    size_t allocatable = 0;

    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  // Empty for an unknown or removed resource. Removes the resources whose grace has passed.
  std::optional<Amounts> NodeStatus(const std::string& resource);
  // Devices by id.
  std::vector<v1beta1::Device> Devices(const std::string& resource) const;
  std::vector<Registration> registrations() const;
  // Open streams of a resource's plugins.
  size_t Streams(const std::string& resource) const;
  // Number of requests to the pod resources API.
  size_t pod_lists() const;
  // Names of the calls for pods to plugins, in their order.
  std::vector<std::string> calls() const;

  // Errors: kFailedPrecondition, "UnexpectedAdmissionError: Allocate failed due to ..., which is unexpected"; the pod
  // then holds nothing and is never admitted again.
  absl::Status Admit(const Pod& pod);
  // Stops, and ends every container without a trace; Start then acts as after a boot of the node.
  void StopNode();
  // What Start is followed by for each pod: it is admitted once more. Containers that run keep their devices unchecked;
  // for others the devices must be healthy, so after a boot a pod that comes before the plugin fails as in Admit.
  absl::Status Readmit(const std::string& pod_uid);
  // The checkpoint is gone; call it after Stop.
  void LoseCheckpoint();
  // Called for each start of a container, also after it has ended. Errors: kFailedPrecondition, and then also until the
  // back-off has passed: 10 s, doubled up to 5 minutes.
  absl::StatusOr<RunOptions> StartContainer(const std::string& pod_uid, const std::string& container);
  // Removes the pod; its devices are free.
  void Remove(const std::string& pod_uid);
  // Sorted device ids; empty when the pod holds none.
  std::vector<std::string> Held(const std::string& pod_uid, const std::string& container,
                                const std::string& resource) const;

  // Advances the time.
  void Advance(std::chrono::milliseconds time);
  // Makes Register fail with this text; an empty text ends that.
  void RefuseRegistrations(const std::string& error);
  // Ends the kubelet's streams of a resource.
  void DropStreams(const std::string& resource);
  // Makes the pod resources API fail with UNAVAILABLE.
  void SetPodResourcesAway(bool away);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rnicd::test
