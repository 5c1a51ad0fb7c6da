#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/networkdirect/memory/card_range.h"
#include "provider/networkdirect/memory/nd_domain.h"

namespace rnicd::provider {

// Flags of IND2MemoryRegion::Register for NDK's rights.
ULONG NdAccessFlags(const AccessRights& rights);

// Memory registered with the card: a memory region for each piece that lies together.
// Threads: one call at a time; the accessors from any.
class NdRegistration {
 public:
  // Errors: those of NdRegistrationStatus; DEVICE_OUT_OF_RESOURCES at the limit set in the options; DEVICE_NOT_CAPABLE
  // for more pieces than NetworkDirectOptions::max_pieces.
  static absl::StatusOr<std::unique_ptr<NdRegistration>> Make(std::shared_ptr<NdDomain> domain,
                                                              std::span<const std::span<std::byte>> runs, ULONG flags);
  // Deregisters; what the card refuses to end is retried by the domain's destructor.
  ~NdRegistration();
  NdRegistration(const NdRegistration&) = delete;
  NdRegistration& operator=(const NdRegistration&) = delete;

  // The registration as the client's addresses [base, base + its length).
  std::shared_ptr<const CardRange> RangeAt(VirtualAddress base, const AccessRights& rights) const;
  // The memory region that has all of the bytes; null if none does, so that no window can express them.
  IND2MemoryRegion* RegionOf(std::span<const std::byte> bytes) const;
  // True until End succeeds.
  bool live() const { return !pieces_.empty(); }
  // When it returns ok, transfers no longer reach the memory; a second call does nothing. A removed card counts as
  // success, because it has released the memory itself. After a failure the pieces that the card did not end remain.
  // Errors: those of NdRegistrationStatus.
  absl::Status End();

 private:
  struct Piece {
    ComPtr<IND2MemoryRegion> region;
    std::span<std::byte> bytes;
    UINT32 local_token = 0;
    UINT32 remote_token = 0;
  };

  explicit NdRegistration(std::shared_ptr<NdDomain> domain) : domain_(std::move(domain)) {}

  absl::Status Add(std::span<std::byte> bytes, ULONG flags);
  absl::Status EndPiece(Piece& piece);

  const std::shared_ptr<NdDomain> domain_;
  std::vector<Piece> pieces_;
};

}  // namespace rnicd::provider
