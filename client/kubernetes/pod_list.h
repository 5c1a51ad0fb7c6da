#pragma once

#include <span>

#include "client/kubernetes/cluster.h"
#include "client/kubernetes/holder.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::kubernetes {

// What the daemon is told of the node's pods: those of the cluster, and with them who holds devices. A holder whose pod
// the cluster did not name (or no cluster is asked) is a pod without UID. What the daemon would refuse is left out, so
// that one strange pod does not hide the others: labels beyond the 64th, a pod whose UID is none of Kubernetes' forms.
v1::SetPodsRequest PodList(std::span<const ClusterPod> pods, std::span<const Holder> holders);

}  // namespace rnicd::kubernetes
