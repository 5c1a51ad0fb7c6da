#pragma once

#include <memory>

#include "provider/engine/engine_memory_region.h"
#include "provider/verbs/memory/registration.h"

namespace rnicd::provider {

// A registration whose owner creates and ends it.
class VerbsMemoryRegion final : public EngineMemoryRegion {
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
  ibv_mr* mr() { return registration_->mr(); }
  // False for a dma-buf: no part of it can be registered a second time, and no window bound to it.
  bool takes_windows() const { return !runs_.empty(); }

 private:
  // The place and the runs of `request`.
  VerbsMemoryRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> registration,
                    const DeviceRegistration& request);
  void PublishLocalToken();
  absl::Status End() override;

  const std::shared_ptr<VerbsDomain> domain_;
  const std::unique_ptr<Registration> registration_;
  const uint64_t length_;
};

}  // namespace rnicd::provider
