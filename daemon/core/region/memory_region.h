#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "daemon/core/region/holdings.h"
#include "daemon/core/region/protection_domain.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/tenant/ledger.h"

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

// An NDK memory region of either kind, which its creation decides: an OrdinaryRegion or a FastRegion. Each request on
// one has two halves. Begin checks the request and takes what it needs; Finish talks to the device, and may run later
// on another thread. Between the two the region is busy, and a close waits. Unless the `start` of a Finish is ok, the
// device is not called, Begin is undone, and `start` is returned.
// Lifetime: holds its protection domain open.
// Threads: safe; of two racing requests one is refused with REGION_BUSY or a state reason.
// Source:   NDK_FN_CREATE_MR.
class MemoryRegion : public Closable {
 public:
  bool is_fast() const { return is_fast_; }
  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_.shared(); }
  // The charge for the region itself; the region stays counted as long as a copy exists.
  const std::shared_ptr<Charge>& charge() const { return charge_; }

  // Errors: REGION_NOT_REGISTERED; for the fast kind REGION_NOT_INITIALIZED.
  virtual absl::StatusOr<LocalToken> GetLocalToken() const = 0;
  virtual absl::StatusOr<RemoteToken> GetRemoteToken() const = 0;
  virtual RegionView View() const = 0;
  virtual void AddTo(Holdings& holdings) const = 0;
  // Length in bytes; 0 unless registered, and of the fast kind.
  virtual uint64_t registered_length() const { return 0; }
  // True while it is registered over a dma-buf.
  virtual bool is_over_dmabuf() const { return false; }
  // Sets the cause reported for the revoked tokens when the region is closed while registered; "close" by default.
  // `cause` must have static storage duration.
  virtual void SetCloseCause(std::string_view /*cause*/) {}
  // True when the device failed to deregister the region at its close.
  virtual bool deregister_failed() const { return false; }

 protected:
  MemoryRegion(bool is_fast, Kept<ProtectionDomain> domain, std::shared_ptr<Charge> charge)
      : Closable("mr_id"), is_fast_(is_fast), domain_(std::move(domain)), charge_(std::move(charge)) {}

 private:
  void ReleaseParents() override { domain_.Release(); }

  const bool is_fast_;
  Kept<ProtectionDomain> domain_;
  const std::shared_ptr<Charge> charge_;
};

// The region as the kind that a request is for.
// Errors: REGION_WRONG_KIND.
template <typename Kind>
absl::StatusOr<std::shared_ptr<Kind>> RegionAs(std::shared_ptr<MemoryRegion> region) {
  if (region->is_fast() != Kind::kIsFast) {
    return MakeError(ErrorReason::REGION_WRONG_KIND, "mr_id");
  }
  return std::static_pointer_cast<Kind>(std::move(region));
}

}  // namespace rnicd::core
