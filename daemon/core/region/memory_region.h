#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/access_rights.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/region/holdings.h"
#include "daemon/core/region/protection_domain.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "provider/api/device.h"

namespace rnicd::core {

// A region as shown to an operator: no token.
struct RegionView {
  std::string adapter_name;
  bool fast_register = false;
  // "created", "registering", "registered", "deregistering"; for the fast kind "created", "initializing", "initialized"
  // or "registered".
  std::string_view state;
  // Address of the first byte; zero unless registered.
  VirtualAddress base;
  uint64_t length = 0;
  uint64_t pages = 0;
  uint64_t page_bytes = 0;
  AccessRights rights;
};

// An NDK memory region: the right to use a range of memory through one protection domain.
//
// Created -Register-> Registering -> Registered -Deregister-> Deregistering -> Created
// Created -Initialize-> Initializing -> Initialized                 (the fast kind; work requests do the rest)
//
// Each request has two halves. Begin checks the request and takes what it needs; Finish talks to the device, and may
// run later on another thread; Cancel runs instead of it. Between the two the region is busy, and a close waits.
// Lifetime: holds its protection domain open; a registration holds its memory objects.
// Threads:  safe; of two racing requests one is refused with REGION_BUSY or a state reason.
// Source:   NDK_FN_REGISTER_MR, NDK_FN_DEREGISTER_MR, NDK_FN_INITIALIZE_FAST_REGISTER_MR.
class MemoryRegion final : public Closable {
 public:
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
  // An initialization of the fast kind that was admitted and must be finished, once.
  struct InitializeRequest {
    Hold busy;
    uint32_t max_pages = 0;
    bool remote_access = false;
    Charge pages;
  };
  // The parts of a region that a fast registration needs.
  struct FastTarget {
    std::shared_ptr<provider::DeviceFastRegion> device;
    uint32_t max_pages = 0;
    bool remote_access = false;
  };
  // The parts of a registration that a window needs.
  struct BindTarget {
    std::shared_ptr<provider::DeviceMemoryRegion> device;
    VirtualAddress base;
    uint64_t length = 0;
    AccessRights rights;
  };
  // The effect of a posted FastRegister on the region, for operators.
  struct FastRegistration {
    VirtualAddress base;
    uint64_t length = 0;
    uint64_t pages = 0;
    AccessRights rights;
  };

  // Errors: OBJECT_CLOSING when the domain is closing. `observer` and `clock` outlive the region.
  static absl::StatusOr<std::shared_ptr<MemoryRegion>> Create(std::shared_ptr<ProtectionDomain> domain,
                                                              bool fast_register, std::shared_ptr<Charge> charge,
                                                              std::shared_ptr<TenantTally> tally, Observer& observer,
                                                              const Clock& clock);

  // Errors: REGION_WRONG_KIND, REGION_ALREADY_REGISTERED, REGION_BUSY, OBJECT_CLOSING, LENGTH_ABOVE_ADAPTER_LIMIT,
  // QUOTA_REGISTERED_BYTES, QUOTA_PINNED_BYTES. A refusal changes nothing.
  absl::StatusOr<RegisterRequest> BeginRegister(MappedRange range, AccessRights rights,
                                                const std::shared_ptr<Ledger>& ledger);
  // Errors: those of DeviceProtectionDomain::RegisterMemory and RegisterDmabuf; the region is then in the state it had
  // before Begin.
  // Unless `start` is ok, the device is not called, Begin is undone, and `start` is returned; so in the other two.
  absl::StatusOr<Registration> FinishRegister(RegisterRequest request, const absl::Status& start);

  // Errors: REGION_WRONG_KIND, REGION_NOT_REGISTERED, REGION_BUSY, OBJECT_CLOSING.
  absl::StatusOr<DeregisterRequest> BeginDeregister();
  // Errors: those of DeviceMemoryRegion::Deregister; the region then stays registered.
  absl::Status FinishDeregister(DeregisterRequest request, const absl::Status& start);

  // Errors: REGION_WRONG_KIND, REGION_ALREADY_INITIALIZED, REGION_BUSY, OBJECT_CLOSING, FIELD_OUT_OF_RANGE,
  // QUOTA_FAST_REGISTER_PAGES.
  absl::StatusOr<InitializeRequest> BeginInitialize(uint32_t max_pages, bool remote_access,
                                                    const std::shared_ptr<Ledger>& ledger);
  // Errors: those of DeviceProtectionDomain::CreateFastRegion; the region is then in the state it had before Begin.
  absl::Status FinishInitialize(InitializeRequest request, const absl::Status& start);
  // For a work request. Errors: REGION_WRONG_KIND, REGION_NOT_INITIALIZED.
  absl::StatusOr<FastTarget> ForFastRegister() const;
  void RecordFastRegistration(const FastRegistration& registration);
  // For a work request. Errors: REGION_WRONG_KIND, REGION_NOT_REGISTERED.
  absl::StatusOr<BindTarget> ForBind() const;
  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_; }

  // Errors: REGION_NOT_REGISTERED; for the fast kind REGION_NOT_INITIALIZED.
  absl::StatusOr<LocalToken> GetLocalToken() const;
  absl::StatusOr<RemoteToken> GetRemoteToken() const;

  // Length in bytes; 0 unless registered.
  uint64_t registered_length() const;
  // True while it is registered over a dma-buf.
  bool is_over_dmabuf() const;
  // Sets the cause reported for the revoked tokens when the region is closed while registered; "close" by default.
  // `cause` must live for ever.
  void SetCloseCause(std::string_view cause);
  // True when the device failed to deregister the region at its close.
  bool deregister_failed() const;
  // The charge for the region itself; the region stays counted as long as a copy exists.
  const std::shared_ptr<Charge>& charge() const { return charge_; }
  RegionView View() const;
  void AddTo(Holdings& holdings) const;

 private:
  enum class State : uint8_t { kCreated, kRegistering, kRegistered, kDeregistering, kInitializing, kInitialized };

  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, Hold domain_hold, bool fast_register,
               std::shared_ptr<Charge> charge, std::shared_ptr<TenantTally> tally, Observer& observer,
               const Clock& clock);

  absl::Status CheckRegistrable() const RNICD_REQUIRES(mutex_);
  absl::StatusOr<std::unique_ptr<provider::DeviceMemoryRegion>> CallDevice(const RegisterRequest& request) const;
  Registration Publish(RegisterRequest& request, std::unique_ptr<provider::DeviceMemoryRegion> device);
  void Undo(RegisterRequest& request);
  void Undo(InitializeRequest& request);
  void ReturnTo(State state);
  absl::Status CheckInitializable() const RNICD_REQUIRES(mutex_);
  absl::Status CheckInitialized() const RNICD_REQUIRES(mutex_);
  void FillFastView(RegionView& view) const RNICD_REQUIRES(mutex_);
  void Forget() RNICD_REQUIRES(mutex_);
  void Finalize() override;
  void ReleaseParents() override { domain_hold_.Release(); }

  const std::shared_ptr<ProtectionDomain> domain_;
  const bool fast_register_;
  const std::shared_ptr<TenantTally> tally_;
  Observer& observer_;
  const Clock& clock_;
  Hold domain_hold_;
  const std::shared_ptr<Charge> charge_;

  mutable Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kCreated;
  // Set in kRegistered and kDeregistering. Registering and deregistering are done without the lock, by the thread that
  // entered the transient state; the lock guards the pointer and the tokens read through it.
  std::shared_ptr<provider::DeviceMemoryRegion> device_ RNICD_GUARDED_BY(mutex_);
  MappedRange range_ RNICD_GUARDED_BY(mutex_);
  AccessRights rights_ RNICD_GUARDED_BY(mutex_);
  PinCharge pinned_ RNICD_GUARDED_BY(mutex_);
  // Device side of the fast kind, set in kInitialized.
  FastTarget fast_ RNICD_GUARDED_BY(mutex_);
  Charge fast_pages_ RNICD_GUARDED_BY(mutex_);
  FastRegistration last_fast_ RNICD_GUARDED_BY(mutex_);
  std::string_view close_cause_ RNICD_GUARDED_BY(mutex_) = "close";
  bool deregister_failed_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
