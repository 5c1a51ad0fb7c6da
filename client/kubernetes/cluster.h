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
  // The one that the kernel's control groups name; of a static pod this is the kubelet's own, not the mirror pod's.
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::map<std::string, std::string> labels;

  friend bool operator==(const ClusterPod&, const ClusterPod&) = default;
};

struct ClusterOptions {
  // "https://10.96.0.1:443"; nothing but https, as a token is sent.
  std::string server;
  // Both must be safe files (base/safe_file.h) or links to such. Read again for each request, because the kubelet
  // renews the token.
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  std::string node_name;
};

// The pods of one node, by the API server. Threads: one at a time.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options) : options_(std::move(options)) {}

  // Those that are not over. Errors, for people: kUnavailable for a server that does not answer well,
  // kPermissionDenied, kInternal for an answer that is no list of pods.
  absl::StatusOr<std::vector<ClusterPod>> Pods() const;

 private:
  const ClusterOptions options_;
};

// Apart from Cluster so that tests can reach it. Errors: kInternal.
absl::StatusOr<std::vector<ClusterPod>> ParsePodList(std::string_view json);

}  // namespace rnicd::kubernetes
