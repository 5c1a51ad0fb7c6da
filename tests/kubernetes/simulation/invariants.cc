#include "tests/kubernetes/simulation/invariants.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace rnicd::test {
namespace {

using kubernetes::FakeDaemon;
using State = ModelContainer::State;

// Grants that the daemon has and of which a container was given the door, by id.
std::map<uint64_t, FakeDaemon::Kept> UsableGrants(const World& world) {
  std::map<uint64_t, FakeDaemon::Kept> usable = world.daemon().grants();
  std::erase_if(usable, [&](const auto& grant) { return !world.handed_out().contains(grant.first); });
  return usable;
}

Finding NoDeviceIsGrantedTwice(const std::map<uint64_t, FakeDaemon::Kept>& usable) {
  std::map<std::string, uint64_t> grants;
  for (const auto& [grant, kept] : usable) {
    for (const std::string& id : kept.request.devices().device_ids()) {
      const auto [first, inserted] = grants.emplace(id, grant);
      if (!inserted) {
        return {"NoDeviceIsGrantedTwice", absl::StrCat(id, " is in those of ", first->second, " and ", grant)};
      }
    }
  }
  return {};
}

Finding AGrantIsForItsDevices(const World& world, const std::map<uint64_t, FakeDaemon::Kept>& usable) {
  for (const auto& [grant, kept] : usable) {
    const std::set<std::string>& ids = world.handed_out().at(grant).ids;
    const auto& granted = kept.request.devices().device_ids();
    if (std::set<std::string>(granted.begin(), granted.end()) != ids ||
        kept.request.limits().pinned_bytes() != ids.size() * (64 << 20)) {
      return {"AGrantIsForItsDevices", absl::StrCat(grant, ": ", kept.request.ShortDebugString())};
    }
  }
  return {};
}

Finding ARunningContainerHasItsGrant(World& world) {
  if (!world.daemon_is_ready()) {
    return {};
  }
  for (const std::string& uid : world.kubelet().LivingPods()) {
    for (const ModelContainer& container : world.kubelet().pods().at(uid).containers) {
      const Allocation* const allocation = world.kubelet().Of(uid, container.name);
      if (container.state != State::kRunning || allocation == nullptr ||
          world.IsExcused(world.handed_out().at(GrantOf(*allocation)))) {
        continue;
      }
      const uint64_t grant = GrantOf(*allocation);
      if (!AcceptsFrom(world.daemon(), uid, grant) || container.directory != world.daemon().DirectoryOf(grant)) {
        return {"ARunningContainerHasItsGrant", absl::StrCat(uid, " ", container.name, ": ", grant)};
      }
    }
  }
  return {};
}

Finding AStartedContainersDoorIsForItsPodOnly(World& world) {
  if (!world.daemon_is_ready() || !world.pods_are_shown()) {
    return {};
  }
  for (const std::string& uid : world.kubelet().LivingPods()) {
    for (const ModelContainer& container : world.kubelet().pods().at(uid).containers) {
      const Allocation* const allocation = world.kubelet().Of(uid, container.name);
      if (container.state == State::kRunning && allocation != nullptr &&
          AcceptsFrom(world.daemon(), "", GrantOf(*allocation))) {
        return {"AStartedContainersDoorIsForItsPodOnly", absl::StrCat(uid, " ", container.name)};
      }
    }
  }
  return {};
}

Finding NoGrantOutlivesItsPod(const World& world, const std::map<uint64_t, FakeDaemon::Kept>& usable) {
  for (const auto& [grant, kept] : usable) {
    const HandedOut& owner = world.handed_out().at(grant);
    if (owner.reviewed.has_value() && *owner.reviewed >= world.options().grace) {
      return {"NoGrantOutlivesItsPod", absl::StrCat(grant, " of ", owner.uid, " ", owner.container)};
    }
  }
  return {};
}

// A living pod has at most one grant for each of its containers.
Finding NothingIsKeptForEver(World& world) {
  constexpr size_t kDying = 150;
  size_t containers = 0;
  for (const std::string& uid : world.kubelet().LivingPods()) {
    containers += world.kubelet().pods().at(uid).containers.size();
  }
  const size_t kept = world.keeper().records().size();
  if (kept > containers + kDying) {
    return {"NothingIsKeptForEver", absl::StrCat(kept, " grants for ", containers, " containers")};
  }
  return {};
}

}  // namespace

Finding CheckGrants(World& world) {
  const std::map<uint64_t, FakeDaemon::Kept> usable = UsableGrants(world);
  if (!world.refused_start().empty()) {
    return {"AContainerMayStart", world.refused_start()};
  }
  for (const Finding& finding : {NoDeviceIsGrantedTwice(usable), AGrantIsForItsDevices(world, usable),
                                 ARunningContainerHasItsGrant(world), AStartedContainersDoorIsForItsPodOnly(world),
                                 NoGrantOutlivesItsPod(world, usable), NothingIsKeptForEver(world)}) {
    if (!finding.invariant.empty()) {
      return finding;
    }
  }
  return {};
}

}  // namespace rnicd::test
