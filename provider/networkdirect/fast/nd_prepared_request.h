#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "provider/engine/engine_request.h"
#include "provider/networkdirect/fast/nd_grant.h"

namespace rnicd::provider {

// A piece of payload: an address under a token, or bytes of this process and the registration they lie in.
struct NdPayloadPiece {
  std::shared_ptr<const NdRegistration> host;
  std::span<std::byte> bytes;
  LocalToken token;
  VirtualAddress address;
  uint32_t length = 0;
};

// What the card keeps for a request: every step that can fail has been done in advance.
struct NdPreparedRequest final : public GrantRequest {
  explicit NdPreparedRequest(std::shared_ptr<NdDomain> request_domain) : domain(std::move(request_domain)) {}
  ~NdPreparedRequest() override { Clear(); }
  void Clear() override;
  // The token of a request that was accepted; Clear removes it, unless its grant is in force.
  RemoteToken Issue();
  NdGrant* own_grant() const { return static_cast<NdGrant*>(grant.get()); }

  const std::shared_ptr<NdDomain> domain;
  std::vector<NdPayloadPiece> payload;
  RemoteToken token;
  // The card executes the invalidation; the window that it invalidates lives until then.
  ComPtr<IND2MemoryWindow> invalidated;
  // A receive with an entry that names memory it may not use: the card gets no entries, so bytes that arrive fail it.
  bool refused = false;
  // A transfer as the card takes it, and the number of parts that it has.
  std::vector<CardRequestPart> parts;
  size_t next_part = 0;
};
inline NdPreparedRequest& NdPreparedOf(EngineRequest& request) {
  return static_cast<NdPreparedRequest&>(*request.card);
}
inline const NdPreparedRequest& NdPreparedOf(const EngineRequest& request) {
  return static_cast<const NdPreparedRequest&>(*request.card);
}

// Registers the bytes of this process that the request names, unless a logical mapping has them, and prepares its
// grant. `connected`: the queue pair is, so that it can bind. Errors: those of NdRegistration::Make,
// NdGrant; for a bind, REGION_NOT_REGISTERED.
absl::Status PrepareNdRequest(const std::shared_ptr<NdDomain>& domain, EngineRequest& request, bool connected);

// Flags and local memory of a transfer. Nothing if an entry names memory that it may not use.
std::optional<CardEntries> TranslateEntries(NdDomain& domain, const EngineRequest& request, LocalUse use);
// Divides a send, read or write into what the card takes. `peer` is the domain of the peer.
struct NdTranslation {
  enum class Kind : uint8_t { kDone, kRefusedHere, kRefusedByPeer, kTooManyEntries };
  Kind kind = Kind::kDone;
  std::vector<CardRequestPart> parts;
};
NdTranslation TranslateTransfer(NdDomain& domain, NdDomain& peer, const EngineRequest& request, uint32_t max_entries);
// Flags of a send, read or write for the card.
ULONG NdOpFlags(const WorkRequest& request);

}  // namespace rnicd::provider
