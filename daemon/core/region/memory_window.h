#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/core/region/protection_domain.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/queue_pair.h"

namespace rnicd::core {

// An NDK memory window.
// Lifetime: holds its domain open. While it is bound its region is held: NDK counts the window among the region's
// successors. The card owns that hold, because only the card detects the end of the binding.
// Threads:  safe.
// Source:   NDK_FN_CREATE_MW, NDK_FN_BIND.
class MemoryWindow final : public Closable {
 public:
  // Errors: OBJECT_CLOSING, DEVICE_OUT_OF_RESOURCES.
  static absl::StatusOr<std::shared_ptr<MemoryWindow>> Create(std::shared_ptr<ProtectionDomain> domain,
                                                              std::shared_ptr<Charge> charge);

  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_.shared(); }
  // The device window for a request; null once the window is closing.
  std::shared_ptr<provider::DeviceMemoryWindow> device() const;
  // Records that a Bind was posted.
  void RecordBind();
  // Errors: WINDOW_NOT_BOUND when no Bind was ever posted.
  absl::StatusOr<RemoteToken> GetRemoteToken() const;
  const std::shared_ptr<Charge>& charge() const { return charge_; }

 private:
  MemoryWindow(Kept<ProtectionDomain> domain, std::shared_ptr<Charge> charge)
      : Closable("mw_id"), domain_(std::move(domain)), charge_(std::move(charge)) {}

  void Finalize() override;
  void ReleaseParents() override { domain_.Release(); }

  Kept<ProtectionDomain> domain_;
  const std::shared_ptr<Charge> charge_;

  mutable Mutex mutex_;
  std::shared_ptr<provider::DeviceMemoryWindow> device_ RNICD_GUARDED_BY(mutex_);
  bool ever_bound_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
