#include "client/kubernetes/container_allocator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/node/kubelet_checkpoint.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr milliseconds kRetryPause(100);

// Retries `call` while the daemon is away, until the timeout passes.
template <typename Call>
auto WithTimeout(milliseconds timeout, const Call& call) -> decltype(call()) {
  const auto end = steady_clock::now() + timeout;
  for (;;) {
    auto outcome = call();
    const absl::Status status = [&] {
      if constexpr (std::is_same_v<decltype(outcome), absl::Status>) {
        return outcome;
      } else {
        return outcome.status();
      }
    }();
    if (!IsTransportFailure(status) || steady_clock::now() + kRetryPause > end) {
      return outcome;
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

}  // namespace

absl::StatusOr<ContainerAllocation> ContainerAllocator::Allocate(const std::string& resource,
                                                                 const std::vector<std::string>& device_ids) {
  const auto spec = std::find_if(config_.resources.begin(), config_.resources.end(),
                                 [&](const ResourceSpec& one) { return one.name == resource; });
  if (spec == config_.resources.end()) {
    return absl::InvalidArgumentError("this node does not offer " + resource);
  }
  const absl::StatusOr<uint64_t> grant_id =
      WithTimeout(config_.daemon_timeout, [&] { return keeper_.Allocate(*spec, device_ids, system_clock::now()); });
  {
    MutexLock lock(mutex_);
    aftermath_.reconcile = true;
    aftermath_.renew = aftermath_.renew || IsTransportFailure(grant_id.status());
  }
  RNICD_RETURN_IF_ERROR(grant_id.status());
  // The daemon may see the directory at another path.
  return ContainerAllocation{.container_path = config_.container_socket_dir,
                             .host_path = absl::StrCat(config_.door_dir, "/", absl::Hex(*grant_id, absl::kZeroPad16))};
}

// Allocate names neither pod nor container; before the start the checkpoint does.
absl::Status ContainerAllocator::Prepare(const std::string& resource, const std::vector<std::string>& device_ids) {
  const std::vector<CheckpointEntry> checkpoint =
      ReadKubeletCheckpoint(config_.kubelet.folder, keeper_.ResourcesInUse()).value_or(std::vector<CheckpointEntry>());
  if (const std::string other = OtherResource(checkpoint, resource, device_ids); !other.empty()) {
    // Both doors would be mounted at one path, and the kubelet would choose one of them at random.
    return absl::FailedPreconditionError(
        absl::StrCat("the container requests ", resource, " and ", other, ", but can have one kind of unit only"));
  }
  const std::string pod_uid = PodUidOf(checkpoint, resource, device_ids);
  return WithTimeout(config_.daemon_timeout,
                     [&] { return keeper_.Prepare(resource, device_ids, pod_uid, system_clock::now()); });
}

void ContainerAllocator::AwaitTurn() {
  keeper_.AwaitTurn();
  MutexLock lock(mutex_);
}

ContainerAllocator::Aftermath ContainerAllocator::TakeAftermath() {
  MutexLock lock(mutex_);
  return std::exchange(aftermath_, {});
}

}  // namespace rnicd::kubernetes
