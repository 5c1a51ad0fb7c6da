#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/kubernetes/config.h"
#include "client/kubernetes/grants/grant_keeper.h"
#include "client/kubernetes/kubelet/allocator.h"

namespace rnicd::kubernetes {

// Gives each container a grant for its devices, with a door of its own.
// Lifetime: config and keeper outlive it.
// Threads:  safe.
class ContainerAllocator final : public Allocator {
 public:
  ContainerAllocator(const Config& config, GrantKeeper& keeper) : config_(config), keeper_(keeper) {}

  absl::StatusOr<ContainerAllocation> Allocate(const std::string& resource,
                                               const std::vector<std::string>& device_ids) override;
  absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) override;
  void KubeletConnected() override { keeper_.KubeletConnected(); }
  std::set<std::string> DevicesToAvoid(const std::string& resource) override {
    return keeper_.DevicesToAvoid(resource);
  }
  void AwaitTurn() override;

  // What has to be done soon, because of an allocation.
  struct Aftermath {
    // The kubelet will soon know the holder of what was allocated.
    bool reconcile = false;
    // The daemon did not respond to an allocation: it may have a grant that is not in the file.
    bool renew = false;
  };
  // That of the allocations since the last call.
  Aftermath TakeAftermath();

 private:
  const Config& config_;
  GrantKeeper& keeper_;
  Mutex mutex_;
  Aftermath aftermath_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::kubernetes
