#pragma once

#include <memory>
#include <string>
#include <utility>

#include "daemon/core/region/adapter.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/device.h"

namespace rnicd::core {

// The domain that isolates a session's regions, windows and queue pairs.
// Lifetime: holds its adapter open; outlives the objects created in it, each of which is a Hold.
class ProtectionDomain final : public Closable {
 public:
  // Errors: OBJECT_CLOSING, DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  static absl::StatusOr<std::shared_ptr<ProtectionDomain>> Create(std::shared_ptr<Adapter> adapter,
                                                                  std::shared_ptr<Charge> charge);

  Adapter& adapter() const { return *adapter_; }
  // Constant for the domain's lifetime. Source: NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN.
  LocalToken privileged_token() const { return privileged_token_; }
  // Valid until closed: call with a Hold.
  provider::DeviceProtectionDomain& device() { return *device_; }
  uint64_t max_registration_size() const { return adapter_->info().max_registration_size; }
  // The charge for the domain itself; the domain stays counted as long as a copy exists.
  const std::shared_ptr<Charge>& charge() const { return charge_; }

 private:
  ProtectionDomain(Kept<Adapter> adapter, std::shared_ptr<Charge> charge)
      : Closable("pd_id"), adapter_(std::move(adapter)), charge_(std::move(charge)) {}

  void Finalize() override { device_.reset(); }
  void ReleaseParents() override { adapter_.Release(); }

  Kept<Adapter> adapter_;
  const std::shared_ptr<Charge> charge_;
  LocalToken privileged_token_;
  std::unique_ptr<provider::DeviceProtectionDomain> device_;
};

}  // namespace rnicd::core
