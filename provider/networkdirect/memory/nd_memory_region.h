#pragma once

#include <memory>

#include "provider/engine/engine_memory_region.h"
#include "provider/networkdirect/memory/nd_registration.h"

namespace rnicd::provider {

// A registration whose owner creates and ends it.
class NdMemoryRegion final : public EngineMemoryRegion {
 public:
  // Errors: those of NdRegistration::Make.
  static absl::StatusOr<std::unique_ptr<NdMemoryRegion>> Register(std::shared_ptr<NdDomain> domain,
                                                                  const DeviceRegistration& request);
  ~NdMemoryRegion() override;

  LocalToken local_token() const override { return LocalToken{local_token_}; }
  RemoteToken remote_token() const override { return RemoteToken{remote_token_}; }

  // While a window is counted.
  const NdRegistration& registration() const { return *registration_; }

 private:
  NdMemoryRegion(std::shared_ptr<NdDomain> domain, std::unique_ptr<NdRegistration> registration,
                 const DeviceRegistration& request);
  void PublishTokens(const std::shared_ptr<const CardRange>& range);
  absl::Status End() override;

  const std::shared_ptr<NdDomain> domain_;
  const std::unique_ptr<NdRegistration> registration_;
  const uint32_t local_token_;
  const uint32_t remote_token_;
};

}  // namespace rnicd::provider
