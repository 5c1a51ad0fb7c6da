#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// A pod as the API server describes it.
struct ClusterPod {
  // UID as in the kernel's control groups; for a static pod the kubelet's own UID, not the mirror pod's.
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::map<std::string, std::string> labels;

  friend bool operator==(const ClusterPod&, const ClusterPod&) = default;
};

struct ClusterOptions {
  // "https://10.96.0.1:443"; https only, because requests carry a token.
  std::string server;
  // Paths of safe files (base/files/safe_file.h), or of links to them; read for each request, because the kubelet
  // renews the token.
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  std::string node_name;
};

// The pods of one node, as listed by the API server.
// Threads: one at a time.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options) : options_(std::move(options)) {}

  // Pods that have not finished. Errors, as text for people: kUnavailable when the request fails or the server returns
  // an unexpected HTTP status, kPermissionDenied, kInternal for a response that is not a list of pods.
  absl::StatusOr<std::vector<ClusterPod>> Pods() const;

 private:
  const ClusterOptions options_;
};

// Separate from Cluster so that tests can call it. Errors: kInternal.
absl::StatusOr<std::vector<ClusterPod>> ParsePodList(std::string_view json);

}  // namespace rnicd::kubernetes
