#include "tests/kubernetes/simulation/invariants.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace rnicd::test {
namespace {

using kubernetes::FakeDaemon;
using State = ModelContainer::State;

// Grants that the daemon has and of which somebody was told the secret, by secret.
std::map<std::string, FakeDaemon::Kept> UsableGrants(const World& world) {
  std::map<std::string, std::string> secrets;
  for (const auto& [secret, owner] : world.handed_out()) {
    secrets[kubernetes::SecretDigestOf(secret)] = secret;
  }
  std::map<std::string, FakeDaemon::Kept> usable;
  for (const auto& [id, kept] : world.daemon().grants()) {
    if (const auto found = secrets.find(kept.secret_sha256); found != secrets.end()) {
      usable[found->second] = kept;
    }
  }
  return usable;
}

Finding NoDeviceIsGrantedTwice(const std::map<std::string, FakeDaemon::Kept>& usable) {
  std::map<std::string, std::string> secrets;
  for (const auto& [secret, kept] : usable) {
    for (const std::string& id : kept.request.devices().device_ids()) {
      const auto [first, inserted] = secrets.emplace(id, secret);
      if (!inserted) {
        return {"NoDeviceIsGrantedTwice", absl::StrCat(id, " is in those of ", first->second, " and ", secret)};
      }
    }
  }
  return {};
}

Finding AGrantIsForItsDevices(const World& world, const std::map<std::string, FakeDaemon::Kept>& usable) {
  for (const auto& [secret, kept] : usable) {
    const std::set<std::string>& ids = world.handed_out().at(secret).ids;
    const auto& granted = kept.request.devices().device_ids();
    if (std::set<std::string>(granted.begin(), granted.end()) != ids ||
        kept.request.limits().pinned_bytes() != ids.size() * (64 << 20)) {
      return {"AGrantIsForItsDevices", absl::StrCat(secret, ": ", kept.request.ShortDebugString())};
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
          world.IsExcused(world.handed_out().at(SecretOf(*allocation)))) {
        continue;
      }
      if (!AcceptsFrom(world.daemon(), uid, SecretOf(*allocation))) {
        return {"ARunningContainerHasItsGrant", absl::StrCat(uid, " ", container.name, ": ", SecretOf(*allocation))};
      }
    }
  }
  return {};
}

// The kubelet then has the secret in its log.
Finding AStartedContainersSecretIsForItsPodOnly(World& world) {
  if (!world.daemon_is_ready() || !world.pods_are_shown()) {
    return {};
  }
  for (const std::string& uid : world.kubelet().LivingPods()) {
    for (const ModelContainer& container : world.kubelet().pods().at(uid).containers) {
      const Allocation* const allocation = world.kubelet().Of(uid, container.name);
      if (container.state == State::kRunning && allocation != nullptr &&
          AcceptsFrom(world.daemon(), "", SecretOf(*allocation))) {
        return {"AStartedContainersSecretIsForItsPodOnly", absl::StrCat(uid, " ", container.name)};
      }
    }
  }
  return {};
}

Finding NoGrantOutlivesItsPod(const World& world, const std::map<std::string, FakeDaemon::Kept>& usable) {
  for (const auto& [secret, kept] : usable) {
    const HandedOut& owner = world.handed_out().at(secret);
    if (owner.reviewed.has_value() && *owner.reviewed >= world.options().grace) {
      return {"NoGrantOutlivesItsPod", absl::StrCat(secret, " of ", owner.uid, " ", owner.container)};
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
  const std::map<std::string, FakeDaemon::Kept> usable = UsableGrants(world);
  if (!world.refused_start().empty()) {
    return {"AContainerMayStart", world.refused_start()};
  }
  for (const Finding& finding : {NoDeviceIsGrantedTwice(usable), AGrantIsForItsDevices(world, usable),
                                 ARunningContainerHasItsGrant(world), AStartedContainersSecretIsForItsPodOnly(world),
                                 NoGrantOutlivesItsPod(world, usable), NothingIsKeptForEver(world)}) {
    if (!finding.invariant.empty()) {
      return finding;
    }
  }
  return {};
}

}  // namespace rnicd::test
