#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "provider/engine/engine_request.h"
#include "provider/verbs/fast/grant.h"
#include "provider/verbs/fast/kernel_fast_region.h"

namespace rnicd::provider {

// A piece of payload: an address under a token, or under a registration made for this request only.
struct PayloadPiece {
  std::unique_ptr<Registration> host;
  LocalToken token;
  uint64_t address = 0;
  uint32_t length = 0;
};

// What the card keeps for a request: every step that can fail has been done in advance.
struct PreparedRequest final : public GrantRequest {
  void Clear() override {
    payload.clear();
    GrantRequest::Clear();
    uses_kernel = false;
    if (kernel != nullptr) {
      kernel->pinned = {};
    }
  }
  Grant* own_grant() const { return static_cast<Grant*>(grant.get()); }
  RemoteToken token() const {
    const uint32_t of_grant = grant != nullptr ? own_grant()->token() : 0;
    return RemoteToken{uses_kernel ? kernel->token : of_grant};
  }

  std::vector<PayloadPiece> payload;
  // Instead of a grant, for a FastRegisterWork of a kernel region. Kept for later ones; valid with uses_kernel.
  std::unique_ptr<KernelRegistration> kernel;
  bool uses_kernel = false;
};
inline PreparedRequest& PreparedOf(EngineRequest& request) { return static_cast<PreparedRequest&>(*request.card); }
inline const PreparedRequest& PreparedOf(const EngineRequest& request) {
  return static_cast<const PreparedRequest&>(*request.card);
}

// Registers the bytes of this process that the request names, and prepares its grant. Errors: those of
// Registration::Make, VerbsFastRegion::Prepare and Grant; for a bind, REGION_NOT_REGISTERED, and
// DEVICE_NOT_CAPABLE for a region of a dma-buf.
absl::Status PrepareRequest(const std::shared_ptr<VerbsDomain>& domain, EngineRequest& request);

// A request in the card's format. Its pointers refer to `entries` and to the prepared request.
struct CardSend {
  ibv_send_wr request = {};
  std::vector<ibv_sge> entries;
};

// Immediate data of a send to a peer daemon: this value to wake the receiver, otherwise the token to invalidate. Cards
// number their keys from 256, so no token equals this value.
inline constexpr uint32_t kImmediateSolicit = 1;

// Translates a send, read or write for the card. `peer_is_rnicd`: the peer understands the immediate data; for any
// other peer, invalidation is left to its card. False when an entry names memory that it may not use.
bool TranslateSend(const VerbsDomain& domain, const EngineRequest& prepared, bool peer_is_rnicd, CardSend& out);
// Translates a receive. Entries with an unknown token are passed on unchanged: the card checks them when a message
// arrives.
std::vector<ibv_sge> TranslateReceive(const VerbsDomain& domain, const EngineRequest& request);
// True when all memory of a receive may be written now. Finds the reason of a failed receive where the card does not
// report it.
bool MayReceive(const VerbsDomain& domain, const EngineRequest& request);

}  // namespace rnicd::provider
