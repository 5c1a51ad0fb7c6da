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
  // For kubelet.sock, the plugins' sockets and the checkpoint.
  std::string folder;
  // Of the pod resources API; empty: none.
  std::string pod_resources_socket;
  // A resource whose plugin went is forgotten after so long.
  std::chrono::milliseconds endpoint_grace{300'000};
  // For the call back during Register.
  std::chrono::milliseconds dial_deadline{10'000};
  std::chrono::milliseconds pre_start_deadline{30'000};
};

// A call of Register, in their order.
struct Registration {
  std::string resource;
  std::string endpoint;
  // Empty: accepted.
  std::string error;
};

// What a container is run with.
struct RunOptions {
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> annotations;
  std::vector<v1beta1::Mount> mounts;
  std::vector<std::string> cdi_devices;
};

// A stand-in for the kubelet, as far as device plugins see it; README.md says what it models. What the API server would
// know (the pods) survives a restart in this object, what the kubelet knows only by its checkpoint.
// Lifetime: stops when it goes. Threads: safe; pods are admitted one after the other.
class Kubelet {
 public:
  // Start must come first.
  explicit Kubelet(KubeletSettings settings);
  ~Kubelet();

  // Wipes all sockets in the folder, reads the checkpoint and serves.
  void Start();
  // As killed: streams end, its sockets stay behind dead, no plugin's socket is touched.
  void Stop();

  // What the node's status says of a resource.
  struct Amounts {
    size_t capacity = 0;
    size_t allocatable = 0;

    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  // Nothing for a resource that is not known, or forgotten. Forgets what its time has come for.
  std::optional<Amounts> NodeStatus(const std::string& resource);
  // By id.
  std::vector<v1beta1::Device> Devices(const std::string& resource) const;
  std::vector<Registration> registrations() const;

  // Errors: kFailedPrecondition, "UnexpectedAdmissionError: Allocate failed due to ..., which is unexpected"; the pod
  // holds nothing then and never comes back.
  absl::Status Admit(const Pod& pod);
  // Each start of a container, also after it has ended. Errors: kFailedPrecondition; the kubelet would try again.
  absl::StatusOr<RunOptions> StartContainer(const std::string& pod_uid, const std::string& container);
  // The pod is gone; its devices are free.
  void Remove(const std::string& pod_uid);
  // Sorted; empty when it holds none.
  std::vector<std::string> Held(const std::string& pod_uid, const std::string& container,
                                const std::string& resource) const;

  // Time goes on by so much at once.
  void Advance(std::chrono::milliseconds time);
  // Register fails with this text from now on; the empty text ends it.
  void RefuseRegistrations(const std::string& error);
  // Ends the kubelet's streams of a resource.
  void DropStreams(const std::string& resource);
  // Whether pod resources are served.
  void SetPodResourcesAway(bool away);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rnicd::test
