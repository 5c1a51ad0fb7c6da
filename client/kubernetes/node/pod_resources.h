#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// A container that holds devices of one resource, as reported by the kubelet.
struct Holder {
  std::string namespace_name;
  std::string pod;
  std::string container;
  std::string resource;
  std::vector<std::string> device_ids;

  friend bool operator==(const Holder&, const Holder&) = default;
};

// A response of the kubelet.
struct PodResourcesList {
  // "namespace/name" of every listed pod, also of pods without devices.
  std::set<std::string> pods;
  // A Holder for each container and each of the resources that it has, in the order of the response.
  std::vector<Holder> holders;
};

// Holders of devices, read from the kubelet's pod resources API. The kubelet lists neither ordinary init containers nor
// UIDs.
// Threads: safe.
class PodResources {
 public:
  // The socket need not exist yet, and may disappear and come back. `own_pod` is "namespace/name" of the plugin's own
  // pod, which runs as long as this object exists: a kubelet that does not list it has been restarted and does not have
  // its pods yet, and its response would leave every grant without a holder. Empty: every response is trusted.
  explicit PodResources(std::string socket_path, std::string own_pod = {})
      : socket_path_(std::move(socket_path)), own_pod_(std::move(own_pod)) {}

  // The pods, and the holders of these resources.
  // Errors: gRPC's code, with text for people: the kubelet is away, does not respond, or does not have its pods yet.
  absl::StatusOr<PodResourcesList> List(const std::vector<std::string>& resources) const;

 private:
  const std::string socket_path_;
  const std::string own_pod_;
};

}  // namespace rnicd::kubernetes
