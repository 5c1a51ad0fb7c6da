#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "provider/api/queue_pair.h"
#include "provider/verbs/grant.h"

namespace rnicd::provider {

// A piece of payload: an address under a token, or under a registration that was made for this request alone.
struct PayloadPiece {
  std::unique_ptr<Registration> host;
  LocalToken token;
  uint64_t address = 0;
  uint32_t length = 0;
};

// A request with all that can fail before its turn done.
struct PreparedRequest {
  WorkRequest request;
  std::vector<PayloadPiece> payload;
  // Of a FastRegisterWork or a BindWork.
  std::unique_ptr<Grant> grant;

  RemoteToken token() const { return RemoteToken{grant != nullptr ? grant->token() : 0}; }
};

// Registers bytes of this process that the request names, and what it grants. Errors: those of Registration::Make,
// VerbsFastRegion::Prepare and VerbsWindow::Prepare.
absl::StatusOr<PreparedRequest> Prepare(const std::shared_ptr<VerbsDomain>& domain, WorkRequest request);

// A request in the card's terms. The pointers in it lead into `entries` and into the prepared request.
struct CardSend {
  ibv_send_wr request = {};
  std::vector<ibv_sge> entries;
};

// What a send says to a peer that is a daemon too, in its immediate data: that the receiver is to be woken, or the
// token to be invalidated. A card numbers its keys from 256 on, so no token is taken for the first.
inline constexpr uint32_t kImmediateSolicit = 1;

// A send, read or write for the card. `peer_speaks`: the peer understands what immediate data say; one that does not is
// left to its card's own invalidation. False when an entry names memory that it may not use.
bool TranslateSend(const VerbsDomain& domain, const PreparedRequest& prepared, bool peer_speaks, CardSend& out);
// A receive. Entries that name nothing are left as they are: the card will judge when a message comes.
std::vector<ibv_sge> TranslateReceive(const VerbsDomain& domain, const PreparedRequest& prepared);
// Whether all of a receive's memory may be written now. Where a card does not say why a receive failed, this does.
bool MayReceive(const VerbsDomain& domain, const PreparedRequest& prepared);

}  // namespace rnicd::provider
