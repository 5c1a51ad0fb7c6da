#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/access_rights.h"
#include "base/units.h"
#include "provider/verbs/verbs_domain.h"

namespace rnicd::provider {

// The card's access bits for NDK's rights. A local write right comes along where verbs demand it; the sink of a read
// needs that right and no other.
int AccessFlags(const AccessRights& rights);

// Memory that the card knows under a pair of keys.
// Threads: one call at a time.
class Registration {
 public:
  // Runs, laid end to end, become the addresses [base, base + length). One run is registered where it lies; several
  // are composed first, and the composed view is gone when this returns, because the card holds the pages.
  // Errors: those of RegistrationStatus and Compose; DEVICE_OUT_OF_RESOURCES at the most the options allow.
  static absl::StatusOr<std::unique_ptr<Registration>> Make(std::shared_ptr<VerbsDomain> domain, VirtualAddress base,
                                                            std::span<const std::span<std::byte>> runs, int access);
  // Deregisters; a card that refuses is told again when the domain goes.
  ~Registration();

  // Also of one that has ended.
  uint32_t lkey() const { return lkey_; }
  // A key without any remote right is one too: some cards give none, and then the local one stands for it.
  uint32_t rkey() const { return rkey_; }
  // Of one that has not.
  ibv_mr* mr() { return mr_; }
  // The runs were composed.
  bool composed() const { return composed_; }
  // Not ended.
  bool live() const { return live_; }
  // No transfer reaches the memory any more when it returns ok; a second call does nothing. A card that is gone has let
  // go by itself. Errors: those of VerbStatus.
  absl::Status End();

 private:
  Registration(std::shared_ptr<VerbsDomain> domain, ibv_mr* mr, bool composed)
      : domain_(std::move(domain)),
        mr_(mr),
        lkey_(mr->lkey),
        rkey_(mr->rkey != 0 ? mr->rkey : mr->lkey),
        composed_(composed) {}

  const std::shared_ptr<VerbsDomain> domain_;
  ibv_mr* const mr_;
  const uint32_t lkey_;
  const uint32_t rkey_;
  const bool composed_;
  bool live_ = true;
};

// `length` bytes of the runs from byte `offset` on. The runs have that many.
std::vector<std::span<std::byte>> SliceRuns(std::span<const std::span<std::byte>> runs, uint64_t offset,
                                            uint64_t length);

}  // namespace rnicd::provider
