// DeviceManager: admission of pods and start of their containers.
#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/kubernetes/kubelet/device_manager.h"

namespace rnicd::test {
namespace {

using Ids = DeviceBook::Ids;

constexpr std::chrono::seconds kFirstBackOff{10};
constexpr std::chrono::seconds kLongestBackOff{300};

Ids Without(const Ids& ids, const Ids& gone) {
  Ids left;
  std::set_difference(ids.begin(), ids.end(), gone.begin(), gone.end(), std::inserter(left, left.end()));
  return left;
}

Ids Union(const Ids& some, const Ids& others) {
  Ids all = some;
  all.insert(others.begin(), others.end());
  return all;
}

// Takes devices from `source` until there are `required`. The highest ids come first: no plugin may rely on an order.
void TakeFrom(const Ids& source, size_t required, Ids& taken) {
  for (auto id = source.rbegin(); id != source.rend() && taken.size() < required; ++id) {
    taken.insert(*id);
  }
}

// The order has no meaning.
std::vector<std::string> Unsorted(const Ids& ids) { return std::vector<std::string>(ids.rbegin(), ids.rend()); }

// The first setting of a variable counts, and the first mount at a path.
void AddTo(RunOptions& options, const v1beta1::ContainerAllocateResponse& answer) {
  options.environment.insert(answer.envs().begin(), answer.envs().end());
  for (const v1beta1::Mount& mount : answer.mounts()) {
    if (std::none_of(options.mounts.begin(), options.mounts.end(),
                     [&](const v1beta1::Mount& known) { return known.container_path() == mount.container_path(); })) {
      options.mounts.push_back(mount);
    }
  }
}

}  // namespace

absl::Status DeviceManager::Admit(const Pod& pod) {
  {
    MutexLock lock(mutex_);
    pods_[pod.uid] = pod;
  }
  const absl::Status status = AdmitContainers(pod);
  if (!status.ok()) {
    Remove(pod.uid);
    return absl::FailedPreconditionError("UnexpectedAdmissionError: Allocate failed due to " +
                                         std::string(status.message()) + ", which is unexpected");
  }
  return absl::OkStatus();
}

// Devices of init containers are reused by later containers; devices of an app container are exclusive.
absl::Status DeviceManager::AdmitContainers(const Pod& pod) {
  IdsByResource reusable;
  for (const Container& container : pod.containers) {
    if (const absl::Status status = AllocateContainer(pod, container, reusable); !status.ok()) {
      return status;
    }
    {
      MutexLock lock(mutex_);
      WriteCheckpoint();
    }
    for (const auto& [resource, allocation] : Of(pod.uid, container.name)) {
      Ids& ids = reusable[resource];
      ids = container.init && !container.restartable ? Union(ids, allocation.device_ids)
                                                     : Without(ids, allocation.device_ids);
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceManager::AllocateContainer(const Pod& pod, const Container& container,
                                              const IdsByResource& reusable) {
  // Only a kubelet that has just started meets it: the container has its devices, whatever their plugin says now.
  if (IsRunning(pod, container)) {
    return absl::OkStatus();
  }
  for (const auto& [resource, required] : container.resources) {
    const auto reused = reusable.find(resource);
    const absl::StatusOr<Ids> ids =
        Choose(pod, container, resource, required, reused == reusable.end() ? Ids() : reused->second);
    if (!ids.ok()) {
      return ids.status();
    }
    if (ids->empty()) {
      continue;
    }
    if (const absl::Status status = AllocateResource(pod, container, resource, *ids); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceManager::Readmit(const std::string& pod_uid) {
  const std::vector<Pod> known = pods();
  const auto pod = std::find_if(known.begin(), known.end(), [&](const Pod& one) { return one.uid == pod_uid; });
  return pod == known.end() ? absl::NotFoundError(pod_uid) : Admit(*pod);
}

bool DeviceManager::IsRunning(const Pod& pod, const Container& container) const {
  MutexLock lock(mutex_);
  return runs_.contains({pod.uid, container.name}) && runs_.at({pod.uid, container.name}).running;
}

// Empty when the container already has the devices that it needs.
absl::StatusOr<Ids> DeviceManager::Choose(const Pod& pod, const Container& container, const std::string& resource,
                                          size_t required, const Ids& reusable) {
  Ids available;
  {
    MutexLock lock(mutex_);
    const std::map<std::string, Allocation> held = book_.Of(pod.uid, container.name);
    const bool has_some = held.contains(resource);
    const Ids healthy = book_.Healthy(resource);
    if (!book_.Knows(resource)) {
      return absl::UnknownError("cannot allocate unregistered device " + resource);
    }
    if (healthy.empty()) {
      return absl::UnknownError("no healthy devices present; cannot allocate unhealthy devices " + resource);
    }
    if (has_some && !Without(held.at(resource).device_ids, healthy).empty()) {
      return absl::UnknownError(
          "previously allocated devices are no longer healthy; cannot allocate unhealthy devices " + resource);
    }
    if (has_some || required == 0) {
      return Ids();
    }
    available = Without(healthy, book_.InUse(resource));
  }
  Ids chosen;
  TakeFrom(reusable, required, chosen);
  if (chosen.size() == required) {
    return chosen;
  }
  if (available.size() < required - chosen.size()) {
    return absl::UnknownError("requested number of devices unavailable for " + resource +
                              ". Requested: " + std::to_string(required - chosen.size()) +
                              ", Available: " + std::to_string(available.size()));
  }
  const absl::StatusOr<Ids> preferred = Prefer(resource, Union(available, chosen), chosen, required);
  if (!preferred.ok()) {
    return preferred.status();
  }
  TakeFrom(Without(*preferred, Without(*preferred, available)), required, chosen);
  TakeFrom(available, required, chosen);
  return chosen;
}

// Empty when the plugin has no preferences.
absl::StatusOr<Ids> DeviceManager::Prefer(const std::string& resource, const Ids& available, const Ids& must_include,
                                          size_t size) {
  const absl::StatusOr<Endpoint> endpoint = RunningEndpoint(resource);
  if (!endpoint.ok()) {
    return endpoint.status();
  }
  if (!endpoint->options.get_preferred_allocation_available()) {
    return Ids();
  }
  Record("GetPreferredAllocation");
  const absl::StatusOr<v1beta1::PreferredAllocationResponse> answer =
      endpoint->client->Prefer(Unsorted(available), Unsorted(must_include), size);
  if (!answer.ok()) {
    return absl::UnknownError("device plugin GetPreferredAllocation rpc failed with err: " +
                              std::string(answer.status().message()));
  }
  if (answer->container_responses().empty()) {
    return Ids();
  }
  const auto& ids = answer->container_responses(0).device_ids();
  return Ids(ids.begin(), ids.end());
}

absl::Status DeviceManager::AllocateResource(const Pod& pod, const Container& container, const std::string& resource,
                                             const Ids& ids) {
  const absl::StatusOr<Endpoint> endpoint = RunningEndpoint(resource);
  if (!endpoint.ok()) {
    return endpoint.status();
  }
  Record("Allocate");
  const absl::StatusOr<v1beta1::AllocateResponse> answer = endpoint->client->Allocate(Unsorted(ids));
  if (!answer.ok()) {
    return answer.status();
  }
  if (answer->container_responses().empty()) {
    return absl::UnknownError("no containers return in allocation response");
  }
  MutexLock lock(mutex_);
  book_.Insert(pod.uid, container.name, resource, Allocation{ids, answer->container_responses(0)});
  return absl::OkStatus();
}

absl::StatusOr<DeviceManager::Endpoint> DeviceManager::RunningEndpoint(const std::string& resource) const {
  MutexLock lock(mutex_);
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end()) {
    return absl::UnknownError("unknown Device Plugin " + resource);
  }
  if (found->second.stopped.has_value()) {
    return absl::UnknownError("endpoint of " + resource + " has been stopped");
  }
  return found->second;
}

void DeviceManager::Record(const std::string& call) {
  MutexLock lock(mutex_);
  calls_.push_back(call);
}

absl::StatusOr<RunOptions> DeviceManager::StartContainer(const std::string& pod_uid, const std::string& container) {
  {
    MutexLock lock(mutex_);
    if (const Run& run = runs_[{pod_uid, container}]; Now() < run.not_before) {
      return absl::FailedPreconditionError("back-off restarting failed container=" + container + " pod=" + pod_uid);
    }
  }
  absl::StatusOr<RunOptions> options = PrepareContainer(pod_uid, container);
  MutexLock lock(mutex_);
  Run& run = runs_[{pod_uid, container}];
  run.running = options.ok();
  if (options.ok()) {
    run.pause = kFirstBackOff;
  } else {
    run.not_before = Now() + run.pause;
    run.pause = std::min(2 * run.pause, kLongestBackOff);
  }
  return options;
}

// The kubelet goes through a container's resources in any order, so the stand-in reverses it with each start.
absl::StatusOr<RunOptions> DeviceManager::PrepareContainer(const std::string& pod_uid, const std::string& container) {
  std::map<std::string, Allocation> allocations = Of(pod_uid, container);
  std::vector<std::string> resources = ResourcesOf(pod_uid, container);
  for (const std::string& resource : resources) {
    if (absl::Status status = PreStart(resource, allocations[resource].device_ids); !status.ok()) {
      return status;
    }
  }
  MutexLock lock(mutex_);
  if (std::exchange(is_reversed_, !is_reversed_)) {
    std::reverse(resources.begin(), resources.end());
  }
  RunOptions options;
  for (const std::string& resource : resources) {
    AddTo(options, allocations[resource].answer);
  }
  return options;
}

std::vector<std::string> DeviceManager::ResourcesOf(const std::string& pod_uid, const std::string& container) const {
  std::vector<std::string> names;
  MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end()) {
    return names;
  }
  for (const Container& one : pod->second.containers) {
    for (const auto& [resource, count] : one.resources) {
      if (one.name == container && count > 0) {
        names.push_back(resource);
      }
    }
  }
  return names;
}

// A plugin that has not registered since the kubelet's restart is not called: its options are unknown.
absl::Status DeviceManager::PreStart(const std::string& resource, const Ids& ids) {
  {
    MutexLock lock(mutex_);
    if (!endpoints_[resource].options.pre_start_required()) {
      return absl::OkStatus();
    }
  }
  // A kubelet that lost its checkpoint.
  if (ids.empty()) {
    return absl::FailedPreconditionError("no devices found allocated in local cache for resource " + resource);
  }
  Record("PreStartContainer");
  const absl::StatusOr<Endpoint> endpoint = RunningEndpoint(resource);
  const absl::Status status =
      endpoint.ok() ? endpoint->client->PreStart(Unsorted(ids), settings_.pre_start_deadline) : endpoint.status();
  return status.ok() ? status
                     : absl::FailedPreconditionError("device plugin PreStartContainer rpc failed with err: " +
                                                     std::string(status.message()));
}

}  // namespace rnicd::test
