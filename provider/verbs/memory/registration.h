#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/api/device.h"
#include "provider/verbs/memory/verbs_domain.h"

namespace rnicd::provider {

// The card's access bits for NDK's rights. Includes the local write right where verbs require it; the sink of a read
// needs that right only.
int AccessFlags(const AccessRights& rights);

// Memory registered with the card under a pair of keys.
// Threads: one call at a time.
class Registration {
 public:
  // Runs, laid end to end, become the addresses [base, base + length). A single run is registered in place; several are
  // composed first, and the composed view is unmapped before Make returns, because the card holds the pages.
  // Errors: those of RegistrationStatus and Compose; DEVICE_OUT_OF_RESOURCES at the limit set in the options;
  // DEVICE_NOT_CAPABLE for what takes less than whole pages of a kernel with large ones.
  static absl::StatusOr<std::unique_ptr<Registration>> Make(std::shared_ptr<VerbsDomain> domain, VirtualAddress base,
                                                            std::span<const std::span<std::byte>> runs, int access);
  // The part of a dma-buf becomes the addresses. Errors: those of DmabufStatus; DEVICE_OUT_OF_RESOURCES at the limit
  // set in the options; DEVICE_NOT_CAPABLE as above.
  static absl::StatusOr<std::unique_ptr<Registration>> MakeOfDmabuf(std::shared_ptr<VerbsDomain> domain,
                                                                    const DeviceDmabufRegistration& request);
  // Deregisters; if the card refuses, the domain's destructor retries.
  ~Registration();

  // Local key; valid also after End.
  uint32_t lkey() const { return lkey_; }
  // Remote key. Some cards assign none without a remote right; the local key is returned then.
  uint32_t rkey() const { return rkey_; }
  // The card's object; must not be used after End.
  ibv_mr* mr() { return mr_; }
  // True when several runs were composed.
  bool composed() const { return composed_; }
  // True until End succeeds.
  bool live() const { return live_; }
  // When it returns ok, transfers no longer reach the memory; a second call does nothing. A removed card counts as
  // success, because it has released the memory itself. Errors: those of VerbStatus.
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

}  // namespace rnicd::provider
