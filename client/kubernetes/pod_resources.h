#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/holder.h"

namespace rnicd::kubernetes {

// Who holds devices, by the kubelet's pod resources API. Threads: safe.
class PodResources {
 public:
  // The socket need not be there yet, and may come back. `own_pod` is "namespace/name" of a pod that is there as long
  // as this object is, the plugin's own: a kubelet that does not name it has been restarted and does not know its pods
  // yet, and its answer would make every grant one of nobody. Empty: every answer is believed.
  explicit PodResources(std::string socket_path, std::string own_pod = {})
      : socket_path_(std::move(socket_path)), own_pod_(std::move(own_pod)) {}

  // A Holder for each container and each of these resources that it has; in the order of the answer.
  // Errors: gRPC's code, and a text for people: the kubelet is away, does not answer, or does not know
  // its pods.
  absl::StatusOr<std::vector<Holder>> List(const std::vector<std::string>& resources) const;

 private:
  const std::string socket_path_;
  const std::string own_pod_;
};

}  // namespace rnicd::kubernetes
