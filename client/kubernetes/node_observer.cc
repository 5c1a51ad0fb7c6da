#include "client/kubernetes/node_observer.h"

#include <utility>

#include "client/kubernetes/node/kubelet_checkpoint.h"

namespace rnicd::kubernetes {

NodeObserver::NodeObserver(const Config& config, TroubleLog& troubles)
    : config_(config),
      troubles_(troubles),
      pod_resources_(config.pod_resources_socket, config.own_pod),
      cluster_(config.cluster) {}

NodeObserver::Seen NodeObserver::Observe(const std::vector<std::string>& resources) {
  Seen seen;
  ObserveKubelet(resources, seen);
  ObserveCluster(seen.observation);
  return seen;
}

// The checkpoint is read after the response, so that it names the pods of every holder.
void NodeObserver::ObserveKubelet(const std::vector<std::string>& resources, Seen& seen) {
  if (config_.pod_resources_socket.empty()) {
    seen.listed = true;
    return;
  }
  absl::StatusOr<PodResourcesList> listed = pod_resources_.List(resources);
  troubles_.Note("asking the kubelet who holds devices", listed.status());
  if (!listed.ok()) {
    return;
  }
  seen.listed = true;
  seen.observation.listed_pods = std::move(listed->pods);
  seen.observation.holders = std::move(listed->holders);
  absl::StatusOr<std::vector<CheckpointEntry>> checkpoint = ReadKubeletCheckpoint(config_.kubelet.folder, resources);
  troubles_.Note("reading the kubelet's checkpoint", checkpoint.status());
  seen.complete = checkpoint.ok();
  if (seen.complete) {
    seen.observation.checkpoint = *std::move(checkpoint);
  }
}

void NodeObserver::ObserveCluster(Observation& observation) {
  if (config_.cluster.server.empty()) {
    return;
  }
  absl::StatusOr<std::vector<ClusterPod>> pods = cluster_.Pods();
  troubles_.Note("asking the API server for pods", pods.status());
  observation.cluster_is_away = !pods.ok();
  if (pods.ok()) {
    cluster_pods_ = *std::move(pods);
    observation.cluster = cluster_pods_;
  }
}

}  // namespace rnicd::kubernetes
