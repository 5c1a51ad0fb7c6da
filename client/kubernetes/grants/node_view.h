#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/kubernetes/grants/grant_file.h"
#include "client/kubernetes/node/cluster.h"
#include "client/kubernetes/node/kubelet_checkpoint.h"
#include "client/kubernetes/node/pod_resources.h"

namespace rnicd::kubernetes {

// What kubelet and API server report about the node's pods and devices.
struct Observation {
  // Containers with devices, by the pod resources API. Ordinary init containers are missing there.
  std::vector<Holder> holders;
  // "namespace/name" of every pod in that response, also of pods without devices.
  std::set<std::string> listed_pods;
  // Read after that response.
  std::vector<CheckpointEntry> checkpoint;
  // Unfinished pods by the API server, queried last; empty when it is not used or did not respond.
  std::optional<std::vector<ClusterPod>> cluster;
  // The API server is used and did not respond.
  bool cluster_is_away = false;
};

enum class Life { kAlive, kGone, kUnknown };

// The pod that has a grant's devices. Names are empty while unknown.
struct GrantHolder {
  Life life = Life::kGone;
  // "namespace/name".
  std::string pod;
  std::string pod_uid;
  std::string container;
  // The kubelet itself has the container with these devices.
  bool is_known_to_kubelet = false;
};

// Answers whether the pod of a grant lives. A grant's holder is the container that has exactly the grant's devices: a
// container with some of them is another one, of the same pod (which reuses devices of its init containers) or of a pod
// that came later.
// Lifetime: the observation outlives it.
// Threads:  one at a time.
class NodeView {
 public:
  explicit NodeView(const Observation& observation);

  GrantHolder HolderOf(const GrantRecord& record) const;
  // Whether a container of another pod than the grant's has one of its devices; false while the grant's pod is unknown.
  bool HeldByAnother(const GrantRecord& record) const;
  // The listed holders; of devices that none of them has, the containers that `grants` remembers, and then the init
  // containers of living pods.
  std::vector<Holder> Holders(std::span<const GrantRecord> grants) const;

 private:
  // Resource name and sorted device ids.
  using Devices = std::pair<std::string, std::vector<std::string>>;

  static Devices DevicesOf(const std::string& resource, const std::vector<std::string>& ids);
  const Holder* HolderWith(const Devices& devices, const std::string& preferred_pod) const;
  std::string UidOf(const Holder& holder) const;
  GrantHolder HolderByUid(const GrantRecord& record, const Devices& devices) const;
  bool MayLive(const GrantRecord& record, bool is_named) const;

  const Observation& observation_;
  std::multimap<Devices, const Holder*> holders_;
  std::multimap<Devices, const CheckpointEntry*> entries_;
  // "namespace/name" of living pods, by UID.
  std::map<std::string, std::string> alive_;
  // Listed pods with devices.
  std::set<std::string> pods_with_devices_;
};

}  // namespace rnicd::kubernetes
