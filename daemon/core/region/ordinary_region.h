#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/ndk/access_rights.h"
#include "base/ndk/registration.h"
#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/region/memory_region.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/core/tenant/pinned_pages.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "provider/api/device.h"

namespace rnicd::core {

// A region that calls register: the right to use a range of memory through one protection domain.
//
// Created -Register-> Registering -> Registered -Deregister-> Deregistering -> Created
//
// Lifetime: a registration holds its memory objects.
// Source:   NDK_FN_REGISTER_MR, NDK_FN_DEREGISTER_MR.
class OrdinaryRegion final : public MemoryRegion {
 public:
  static constexpr bool kIsFast = false;

  // A registration that was admitted and must be finished, once.
  struct RegisterRequest {
    Hold busy;
    MappedRange range;
    AccessRights rights;
    PinCharge pinned;
    Instant started;
  };
  // A deregistration that was admitted and must be finished, once.
  struct DeregisterRequest {
    Hold busy;
  };
  // The parts of a registration that a window needs.
  struct BindTarget {
    std::shared_ptr<provider::DeviceMemoryRegion> device;
    VirtualAddress base;
    uint64_t length = 0;
    AccessRights rights;
  };
  // Errors: OBJECT_CLOSING when the domain is closing. `observer` and `clock` outlive the region.
  static absl::StatusOr<std::shared_ptr<OrdinaryRegion>> Create(std::shared_ptr<ProtectionDomain> domain,
                                                                std::shared_ptr<Charge> charge,
                                                                std::shared_ptr<TenantTally> tally, Observer& observer,
                                                                const Clock& clock);

  // Errors: REGION_ALREADY_REGISTERED, REGION_BUSY, OBJECT_CLOSING, LENGTH_ABOVE_ADAPTER_LIMIT,
  // QUOTA_REGISTERED_BYTES, QUOTA_PINNED_BYTES. A refusal changes nothing.
  absl::StatusOr<RegisterRequest> BeginRegister(MappedRange range, AccessRights rights,
                                                const std::shared_ptr<Ledger>& ledger);
  // The request goes after its outcome was reported, so that a close that waits for it comes later. Errors: those of
  // DeviceProtectionDomain::RegisterMemory and RegisterDmabuf; the region is then in the state it had before Begin.
  absl::StatusOr<Registration> FinishRegister(RegisterRequest& request, const absl::Status& start);

  // Errors: REGION_NOT_REGISTERED, REGION_BUSY, OBJECT_CLOSING.
  absl::StatusOr<DeregisterRequest> BeginDeregister();
  // The request as above. Errors: those of DeviceMemoryRegion::Deregister; the region then stays registered.
  absl::Status FinishDeregister(DeregisterRequest& request, const absl::Status& start);

  // For a work request. Errors: REGION_NOT_REGISTERED.
  absl::StatusOr<BindTarget> ForBind() const;

  absl::StatusOr<LocalToken> GetLocalToken() const override;
  absl::StatusOr<RemoteToken> GetRemoteToken() const override;
  RegionView View() const override;
  void AddTo(Holdings& holdings) const override;
  uint64_t registered_length() const override;
  bool is_over_dmabuf() const override;
  void SetCloseCause(std::string_view cause) override;
  bool deregister_failed() const override;

 private:
  enum class State : uint8_t { kCreated, kRegistering, kRegistered, kDeregistering };

  OrdinaryRegion(Kept<ProtectionDomain> domain, std::shared_ptr<Charge> charge, std::shared_ptr<TenantTally> tally,
                 Observer& observer, const Clock& clock);

  absl::Status CheckRegistrable() const RNICD_REQUIRES(mutex_);
  absl::Status CheckRegistered() const RNICD_REQUIRES(mutex_);
  absl::StatusOr<std::unique_ptr<provider::DeviceMemoryRegion>> CallDevice(const RegisterRequest& request) const;
  Registration Publish(RegisterRequest& request, std::unique_ptr<provider::DeviceMemoryRegion> device);
  void Undo(RegisterRequest& request);
  void ReturnTo(State state);
  void Forget() RNICD_REQUIRES(mutex_);
  void Finalize() override;

  const std::shared_ptr<TenantTally> tally_;
  Observer& observer_;
  const Clock& clock_;

  mutable Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kCreated;
  // Set in kRegistered and kDeregistering. Registering and deregistering are done without the lock, by the thread that
  // entered the transient state; the lock guards the pointer and the tokens read through it.
  std::shared_ptr<provider::DeviceMemoryRegion> device_ RNICD_GUARDED_BY(mutex_);
  MappedRange range_ RNICD_GUARDED_BY(mutex_);
  AccessRights rights_ RNICD_GUARDED_BY(mutex_);
  PinCharge pinned_ RNICD_GUARDED_BY(mutex_);
  std::string_view close_cause_ RNICD_GUARDED_BY(mutex_) = "close";
  bool deregister_failed_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
