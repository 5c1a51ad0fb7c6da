#pragma once

#include <span>

#include "client/kubernetes/node/cluster.h"
#include "client/kubernetes/node/pod_resources.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::kubernetes {

// Builds the list of the node's pods for the daemon: the cluster's pods, joined with the holders of devices. A holder
// whose pod is not in the cluster's list (or when there is no cluster) becomes a pod without UID. Entries that the
// daemon would refuse are left out, so that one malformed pod does not hide the others: labels beyond the 64th, a pod
// whose UID has none of Kubernetes' forms.
v1::SetPodsRequest PodList(std::span<const ClusterPod> pods, std::span<const Holder> holders);

}  // namespace rnicd::kubernetes
