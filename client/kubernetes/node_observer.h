#pragma once

#include <string>
#include <vector>

#include "client/kubernetes/config.h"
#include "client/kubernetes/grants/node_view.h"
#include "client/kubernetes/node/cluster.h"
#include "client/kubernetes/node/pod_resources.h"
#include "client/kubernetes/trouble_log.h"

namespace rnicd::kubernetes {

// Asks the kubelet for the holders of devices, and the cluster for their pods.
// Lifetime: config and log outlive it.
// Threads:  one.
class NodeObserver {
 public:
  NodeObserver(const Config& config, TroubleLog& troubles);

  struct Seen {
    Observation observation;
    // The kubelet listed its pods, or is not asked.
    bool listed = false;
    // The observation has everything that revoking grants needs.
    bool complete = false;
  };
  // `resources` are those whose holders matter. What does not respond is logged and left out.
  Seen Observe(const std::vector<std::string>& resources);

  // The pods of the API server's last response.
  const std::vector<ClusterPod>& cluster_pods() const { return cluster_pods_; }

 private:
  void ObserveKubelet(const std::vector<std::string>& resources, Seen& seen);
  void ObserveCluster(Observation& observation);

  const Config& config_;
  TroubleLog& troubles_;
  const PodResources pod_resources_;
  const Cluster cluster_;
  std::vector<ClusterPod> cluster_pods_;
};

}  // namespace rnicd::kubernetes
