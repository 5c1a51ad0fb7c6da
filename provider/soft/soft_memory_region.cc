#include "provider/soft/soft_memory_region.h"

#include <vector>

#include "base/status.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<SoftMemoryRegion>> SoftMemoryRegion::Register(std::shared_ptr<SoftNic> nic,
                                                                             uint64_t domain,
                                                                             const DeviceRegistration& registration) {
  auto runs =
      std::make_shared<const std::vector<std::span<std::byte>>>(registration.runs.begin(), registration.runs.end());
  auto memory = std::make_shared<SoftRegionMemory>(SoftRegionMemory::Shape{.domain = domain,
                                                                           .base = registration.base,
                                                                           .length = registration.length,
                                                                           .rights = nic->Resolve(registration.rights),
                                                                           .runs = *runs,
                                                                           .backing = runs});
  RNICD_ASSIGN_OR_RETURN(const SoftKeyTable::Keys keys, nic->keys().Insert(memory));
  return std::unique_ptr<SoftMemoryRegion>(new SoftMemoryRegion(std::move(nic), keys, std::move(memory)));
}

std::shared_ptr<SoftRegionMemory> SoftMemoryRegion::memory() const {
  MutexLock lock(mutex_);
  return memory_;
}

absl::Status SoftMemoryRegion::Deregister() {
  const std::shared_ptr<SoftRegionMemory> registered = memory();
  if (registered != nullptr && !registered->RefuseWindows()) {
    return MakeError(ErrorReason::REGION_HAS_WINDOWS, "mr_id");
  }
  Revoke();
  return absl::OkStatus();
}

void SoftMemoryRegion::Revoke() {
  std::shared_ptr<SoftRegionMemory> memory;
  {
    MutexLock lock(mutex_);
    memory = std::move(memory_);
  }
  if (memory != nullptr) {
    nic_->keys().Remove(keys_.local);
    memory->Revoke();
  }
}

}  // namespace rnicd::provider
