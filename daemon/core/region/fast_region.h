#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/access_rights.h"
#include "daemon/core/region/memory_region.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/device.h"

namespace rnicd::core {

// A region of the fast kind: initialized by a call, registered and invalidated by work requests, each time with other
// pages.
//
// Created -Initialize-> Initializing -> Initialized
//
// Source: NDK_FN_INITIALIZE_FAST_REGISTER_MR, NDK_FN_FAST_REGISTER.
class FastRegion final : public MemoryRegion {
 public:
  static constexpr bool kIsFast = true;

  // An initialization that was admitted and must be finished, once.
  struct InitializeRequest {
    Hold busy;
    uint32_t max_pages = 0;
    bool remote_access = false;
    Charge pages;
  };
  // The parts of a region that a fast registration needs.
  struct Target {
    std::shared_ptr<provider::DeviceFastRegion> device;
    uint32_t max_pages = 0;
    bool remote_access = false;
  };
  // The effect of a posted FastRegister on the region, for operators.
  struct FastRegistration {
    VirtualAddress base;
    uint64_t length = 0;
    uint64_t pages = 0;
    AccessRights rights;
  };

  // Errors: OBJECT_CLOSING when the domain is closing.
  static absl::StatusOr<std::shared_ptr<FastRegion>> Create(std::shared_ptr<ProtectionDomain> domain,
                                                            std::shared_ptr<Charge> charge);

  // Errors: REGION_ALREADY_INITIALIZED, REGION_BUSY, OBJECT_CLOSING, FIELD_OUT_OF_RANGE, QUOTA_FAST_REGISTER_PAGES.
  absl::StatusOr<InitializeRequest> BeginInitialize(uint32_t max_pages, bool remote_access,
                                                    const std::shared_ptr<Ledger>& ledger);
  // The request goes after its outcome was reported. Errors: those of DeviceProtectionDomain::CreateFastRegion; the
  // region is then in the state it had before Begin.
  absl::Status FinishInitialize(InitializeRequest& request, const absl::Status& start);
  // For a work request. Errors: REGION_NOT_INITIALIZED.
  absl::StatusOr<Target> ForFastRegister() const;
  void RecordFastRegistration(const FastRegistration& registration);

  absl::StatusOr<LocalToken> GetLocalToken() const override;
  absl::StatusOr<RemoteToken> GetRemoteToken() const override;
  RegionView View() const override;
  void AddTo(Holdings& holdings) const override;

 private:
  enum class State : uint8_t { kCreated, kInitializing, kInitialized };

  using MemoryRegion::MemoryRegion;

  absl::Status CheckInitializable() const RNICD_REQUIRES(mutex_);
  absl::Status CheckInitialized() const RNICD_REQUIRES(mutex_);
  void Undo(InitializeRequest& request);
  void Finalize() override;

  mutable Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kCreated;
  // Set in kInitialized.
  Target target_ RNICD_GUARDED_BY(mutex_);
  Charge pages_ RNICD_GUARDED_BY(mutex_);
  FastRegistration last_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
