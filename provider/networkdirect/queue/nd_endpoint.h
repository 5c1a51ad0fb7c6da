#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/engine/queue_pair_engine.h"
#include "provider/networkdirect/card/nd_status.h"
#include "provider/networkdirect/fast/nd_prepared_request.h"
#include "provider/networkdirect/queue/nd_link.h"
#include "provider/networkdirect/queue/nd_notes.h"

namespace rnicd::provider {

// A queue pair of a Network Direct card. The card executes sends, reads and writes, and binds and invalidates windows.
// Registrations are executed here.
//
// Both ends of a connection are of this provider, so what the card does not transmit (the token that a send
// invalidates, whether it solicits) is passed to the peer directly. A queue pair that is connected to itself has two
// queue pairs of the card, connected to each other: one for its sends, one for its receives.
// Lifetime: owned by its engine.
// Threads:  as EngineCard; results come on the loop's thread.
class NdEndpoint final : public EngineCard, public NdLink::Sink {
 public:
  // `listener` outlives Shutdown. Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<QueuePairEngine>> Create(std::shared_ptr<NdDomain> domain,
                                                                 const QueuePairLimits& limits,
                                                                 QueuePairListener& listener);

  absl::Status Prepare(EngineRequest& request) override;
  RemoteToken Issue(EngineRequest& request) override;
  absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) override;
  BeginResult Begin(EngineRequest& request, EngineTurn& turn) override;
  absl::Status PostReceive(EngineRequest& receive) override;
  NtStatus Conclude(EngineRequest& request) override;
  void Fail() override;
  void Close() override;

  // For the loop.
  void OnResults(NdLink& link) override;
  void OnUp() override;
  void OnDown(bool was_up) override;
  void OnCardFailed() override;
  void OnTick();

 private:
  // Context of a request of the card: the serial in its queue, with a bit for receives.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static void* ContextOf(uint64_t value) { return reinterpret_cast<void*>(static_cast<uintptr_t>(value)); }

  // A receive as the card takes it.
  struct CardReceive {
    uint64_t serial = 0;
    CardEntries entries;
  };
  struct Receiving {
    // The link that is sent by, unless the queue pair is connected to itself; null until Connect.
    std::shared_ptr<NdLink> link;
    // Receives posted before it is known which queue pair of the card takes them.
    std::vector<CardReceive> early;
  };
  // The listener that expects a request for this side, and the ticket that it brings.
  struct Expectation {
    std::shared_ptr<NdListener> listener;
    uint64_t ticket = 0;
  };
  // Parts of a divided request that are at the card.
  struct Wave {
    uint32_t at_card = 0;
    // Further parts follow.
    bool more = false;
    CardOutcome outcome;
  };
  // kLost: there was a connection. kGone: there will be none.
  enum class Reach : uint8_t { kUp, kWaits, kLost, kGone };

  NdEndpoint(std::shared_ptr<NdDomain> domain, uint64_t number, const QueuePairLimits& limits)
      : domain_(std::move(domain)), number_(number), limits_(limits) {}

  NdNode& node() { return domain_->node(); }
  std::shared_ptr<NdEndpoint> Self();

  // Connecting.
  // The link that receives come by.
  absl::StatusOr<std::shared_ptr<NdLink>> ReceiveLink(bool to_itself);
  // Gives the card what was posted before there was a peer.
  absl::Status BeginReceives(std::shared_ptr<NdLink> link, const std::string& peer_address);
  absl::Status BeginHandshake(NdEndpoint& peer);
  // Where to ask for a connection; nothing if this side has ended.
  absl::StatusOr<std::optional<NdAddress>> ExpectRequest(uint64_t ticket);
  bool is_connected() const;
  bool PeerHasEnded();

  // Transfers.
  Reach ReachPeer(const EngineTurn& turn) const;
  BeginResult BeginTransfer(EngineRequest& request, EngineTurn& turn);
  BeginResult PostParts(EngineRequest& request, EngineTurn& turn);
  static HRESULT PostPart(IND2QueuePair& pair, const EngineRequest& request, const CardRequestPart& part);
  BeginResult RefusedByCard(HRESULT result, ND2_REQUEST_TYPE type, const EngineTurn& turn);
  // Success also if the queue pair or its connection has ended: the engine then keeps the receive until the end.
  absl::Status PostToCard(CardReceive receive) RNICD_REQUIRES(mutex_);

  // Local requests.
  BeginResult BeginLocal(EngineRequest& request);
  // Gives a bind or an invalidation to the card.
  BeginResult PostLocal(EngineRequest& request);
  NtStatus ConcludeRead(EngineRequest& request);

  // Results.
  void OnResult(const ND2_RESULT& result);
  void OnInitiatorResult(uint64_t serial, const ND2_RESULT& result);
  // Nothing if further parts of the request follow.
  std::optional<CardOutcome> EndPart(uint64_t serial, CardOutcome outcome);
  void OnReceiveResult(uint64_t serial, const ND2_RESULT& result);
  Completion ReadReceive(const ND2_RESULT& result, const EngineRequest& receive);
  void TakeNote(Completion& completion);

  const std::shared_ptr<NdDomain> domain_;
  const uint64_t number_;
  const QueuePairLimits limits_;
  // Set before any other thread knows the endpoint.
  std::shared_ptr<NdLink> send_link_;

  // Taken after the engine's, and before those of links.
  mutable Mutex mutex_;
  Receiving receiving_ RNICD_GUARDED_BY(mutex_);
  std::string peer_address_ RNICD_GUARDED_BY(mutex_);
  bool failed_ RNICD_GUARDED_BY(mutex_) = false;
  // Requests at the card, and those of them that are in its initiator queue.
  uint64_t at_card_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t initiated_ RNICD_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Wave> waves_ RNICD_GUARDED_BY(mutex_);
  Expectation expected_ RNICD_GUARDED_BY(mutex_);
  BoundWindows bound_;
  NdNotes notes_;
};

}  // namespace rnicd::provider
