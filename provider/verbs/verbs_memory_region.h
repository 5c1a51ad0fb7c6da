#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "provider/api/device.h"
#include "provider/engine/byte_runs.h"
#include "provider/verbs/registration.h"

namespace rnicd::provider {

// A registration whose owner creates and ends it.
class VerbsMemoryRegion final : public DeviceMemoryRegion {
 public:
  // Errors: those of Registration::Make.
  static absl::StatusOr<std::unique_ptr<VerbsMemoryRegion>> Register(std::shared_ptr<VerbsDomain> domain,
                                                                     const DeviceRegistration& request);
  // Without the right to bind windows, which the kernel does not give to such a registration. Errors: those of
  // Registration::MakeOfDmabuf.
  static absl::StatusOr<std::unique_ptr<VerbsMemoryRegion>> RegisterDmabuf(std::shared_ptr<VerbsDomain> domain,
                                                                           const DeviceDmabufRegistration& request);
  ~VerbsMemoryRegion() override;

  LocalToken local_token() const override { return LocalToken{registration_->lkey()}; }
  RemoteToken remote_token() const override { return RemoteToken{registration_->rkey()}; }
  absl::Status Deregister() override;

  // Counts a window, which prevents the region from being deregistered. False when the region is deregistered.
  bool AddWindow();
  void RemoveWindow();
  ibv_mr* mr() { return registration_->mr(); }
  // False for a dma-buf: no part of it can be registered a second time, and no window bound to it.
  bool takes_windows() const { return !runs_.empty(); }
  // The memory of a part of the region.
  std::vector<std::span<std::byte>> Slice(VirtualAddress base, uint64_t length) const {
    return SliceRuns(runs_, base.value - base_.value, length);
  }

 private:
  // The place and the runs of `request`.
  VerbsMemoryRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> registration,
                    const DeviceRegistration& request);
  void PublishLocalToken();

  const std::shared_ptr<VerbsDomain> domain_;
  const std::unique_ptr<Registration> registration_;
  const VirtualAddress base_;
  const uint64_t length_;
  const AccessRights rights_;
  // Empty for a dma-buf.
  const std::vector<std::span<std::byte>> runs_;

  Mutex mutex_;
  uint64_t windows_ RNICD_GUARDED_BY(mutex_) = 0;
  bool refuses_windows_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
