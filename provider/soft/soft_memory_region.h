#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "provider/api/device.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_region_memory.h"

namespace rnicd::provider {

// A normal registration: keys that reach memory until it is deregistered.
class SoftMemoryRegion final : public DeviceMemoryRegion {
 public:
  // Errors: DEVICE_OUT_OF_RESOURCES.
  static absl::StatusOr<std::unique_ptr<SoftMemoryRegion>> Register(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                                                    const DeviceRegistration& registration);
  ~SoftMemoryRegion() override { Revoke(); }

  LocalToken local_token() const override { return keys_.local; }
  RemoteToken remote_token() const override { return keys_.remote; }
  absl::Status Deregister() override;
  // Null once deregistered. Threads: safe.
  std::shared_ptr<SoftRegionMemory> memory() const;

 private:
  SoftMemoryRegion(std::shared_ptr<SoftNic> nic, SoftKeyTable::Keys keys, std::shared_ptr<SoftRegionMemory> memory)
      : nic_(std::move(nic)), keys_(keys), memory_(std::move(memory)) {}
  void Revoke();

  const std::shared_ptr<SoftNic> nic_;
  const SoftKeyTable::Keys keys_;
  mutable Mutex mutex_;
  std::shared_ptr<SoftRegionMemory> memory_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
