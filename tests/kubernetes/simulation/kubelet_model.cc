#include "tests/kubernetes/simulation/kubelet_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rnicd::test {
namespace {

std::string DeviceNumbered(size_t number) {
  return "any-" + std::string(number < 10 ? "000" : "00") + std::to_string(number);
}

}  // namespace

// Entries of dead pods go with the next allocation or response, and from the checkpoint with the next allocation.
void KubeletModel::DropDeadPods() {
  for (const auto& [uid, pod] : pods_) {
    if (!pod.alive) {
      book_.Remove(uid);
    }
  }
}

bool KubeletModel::Admit(ModelPod pod, size_t fails_at, const Allocate& allocate) {
  const std::string uid = pod.uid;
  pods_[uid] = std::move(pod);
  std::set<std::string> reusable;
  const std::vector<ModelContainer> containers = pods_[uid].containers;
  for (size_t index = 0; index < containers.size(); ++index) {
    const ModelContainer& container = containers[index];
    if (container.units == 0) {
      continue;
    }
    DropDeadPods();
    const std::set<std::string> ids = Choose(container.units, reusable);
    const uint64_t grant = ids.empty() ? 0 : allocate(std::vector<std::string>(ids.rbegin(), ids.rend()));
    if (grant == 0 || index == fails_at) {
      pods_[uid].alive = false;
      return false;
    }
    Allocation allocation{.device_ids = ids, .answer = {}};
    allocation.answer.add_mounts()->set_host_path(std::to_string(grant));
    book_.Insert(uid, container.name, kResource, std::move(allocation));
    checkpoint_ = book_.ToCheckpoint();
    for (const std::string& id : ids) {
      container.is_init ? void(reusable.insert(id)) : void(reusable.erase(id));
    }
  }
  return true;
}

// Empty when there are not enough.
std::set<std::string> KubeletModel::Choose(size_t units, const std::set<std::string>& reusable) {
  std::set<std::string> chosen;
  for (auto id = reusable.begin(); id != reusable.end() && chosen.size() < units; ++id) {
    chosen.insert(*id);
  }
  std::set<std::string> in_use = book_.InUse(kResource);
  in_use.insert(reusable.begin(), reusable.end());
  std::vector<std::string> free;
  for (size_t number = 0; number < kUnits; ++number) {
    if (!in_use.contains(DeviceNumbered(number))) {
      free.push_back(DeviceNumbered(number));
    }
  }
  while (chosen.size() < units && !free.empty()) {
    const size_t index = dice_.Chance(70) ? 0 : static_cast<size_t>(dice_.Below(free.size()));
    chosen.insert(free[index]);
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return chosen.size() == units ? chosen : std::set<std::string>();
}

void KubeletModel::End(const std::string& uid) { pods_.at(uid).alive = false; }

void KubeletModel::Restart(bool keep_checkpoint) {
  connected_ = false;
  if (!keep_checkpoint) {
    checkpoint_ = DeviceBook().ToCheckpoint();
    for (auto& [uid, pod] : pods_) {
      for (const ModelContainer& container : pod.containers) {
        pod.is_lost = pod.is_lost || Of(uid, container.name) != nullptr;
      }
    }
  }
  book_ = DeviceBook::FromCheckpoint(checkpoint_);
}

std::vector<std::string> KubeletModel::LivingPods() const {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    if (pod.alive) {
      uids.push_back(uid);
    }
  }
  return uids;
}

const Allocation* KubeletModel::Of(const std::string& uid, const std::string& container) const {
  const auto& held = book_.Of(uid, container);
  return held.empty() ? nullptr : &held.begin()->second;
}

void KubeletModel::Describe(kubernetes::Observation& observation) {
  DropDeadPods();
  for (const auto& [uid, pod] : pods_) {
    if (!pod.alive) {
      continue;
    }
    observation.listed_pods.insert("team/" + pod.name);
    for (const ModelContainer& container : pod.containers) {
      const Allocation* const allocation = Of(uid, container.name);
      if (allocation != nullptr && !container.is_init) {
        observation.holders.push_back({.namespace_name = "team",
                                       .pod = pod.name,
                                       .container = container.name,
                                       .resource = kResource,
                                       .device_ids = {allocation->device_ids.rbegin(), allocation->device_ids.rend()}});
      }
    }
  }
  observation.checkpoint = checkpoint();
}

std::vector<kubernetes::CheckpointEntry> KubeletModel::checkpoint() const {
  return kubernetes::ParseKubeletCheckpoint(checkpoint_, {kResource}).value();
}

}  // namespace rnicd::test
