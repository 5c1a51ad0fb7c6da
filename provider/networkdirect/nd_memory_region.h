#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "provider/api/device.h"
#include "provider/engine/byte_runs.h"
#include "provider/networkdirect/nd_registration.h"

namespace rnicd::provider {

// A registration whose owner creates and ends it.
class NdMemoryRegion final : public DeviceMemoryRegion {
 public:
  // Errors: those of NdRegistration::Make.
  static absl::StatusOr<std::unique_ptr<NdMemoryRegion>> Register(std::shared_ptr<NdDomain> domain,
                                                                  const DeviceRegistration& request);
  ~NdMemoryRegion() override;

  LocalToken local_token() const override { return LocalToken{local_token_}; }
  RemoteToken remote_token() const override { return RemoteToken{remote_token_}; }
  absl::Status Deregister() override;

  // Counts a window, which prevents the region from being deregistered. False when the region is deregistered.
  bool AddWindow();
  void RemoveWindow();
  // While a window is counted: the memory of a part of the region, and the registration of all of it.
  std::vector<std::span<std::byte>> Part(VirtualAddress base, uint64_t length) const {
    return SliceRuns(runs_, base.value - base_.value, length);
  }
  const NdRegistration& registration() const { return *registration_; }

 private:
  NdMemoryRegion(std::shared_ptr<NdDomain> domain, std::unique_ptr<NdRegistration> registration,
                 const DeviceRegistration& request);
  void PublishTokens(const std::shared_ptr<const CardRange>& range);

  const std::shared_ptr<NdDomain> domain_;
  const std::unique_ptr<NdRegistration> registration_;
  const VirtualAddress base_;
  const AccessRights rights_;
  const std::vector<std::span<std::byte>> runs_;
  const uint32_t local_token_;
  const uint32_t remote_token_;

  Mutex mutex_;
  uint64_t windows_ RNICD_GUARDED_BY(mutex_) = 0;
  bool refuses_windows_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
