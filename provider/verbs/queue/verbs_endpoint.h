#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "provider/engine/queue_pair_engine.h"
#include "provider/verbs/fast/prepared_request.h"
#include "provider/verbs/queue/verbs_queue_pair.h"

namespace rnicd::provider {

// A queue pair of a real card. The card executes sends, reads and writes, and gets them as soon as they begin. Requests
// that it cannot execute in queue order (fast registrations, invalidations, binds) are executed here.
//
// Nothing is posted to the card once the queue pair is in the error state, because cards have internal races there. A
// peer of another process is probed when the connection is idle.
// Lifetime: owned by its engine.
// Threads: as EngineCard; events come on the loop's thread.
class VerbsEndpoint final : public EngineCard, public CompletionSink {
 public:
  // `listener` outlives Shutdown. Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<QueuePairEngine>> Create(std::shared_ptr<VerbsDomain> domain,
                                                                 const QueuePairLimits& limits,
                                                                 QueuePairListener& listener);

  const QpAddress& qp_address() const { return queue_pair_.address(); }
  // Takes the card's queue pair to the states in which it receives and sends, along a route that the connection manager
  // gave. The engine's Connect with the same address follows when the connection is made. `is_local`: the peer is a
  // queue pair of this daemon. Errors: those of DeviceQueuePair::Connect.
  absl::Status Follow(const QueuePairRoute& route, const std::string& peer_address, bool is_local);

  // The same where the connection manager moves the queue pair itself, as on iWARP.
  absl::Status Follow(const std::string& peer_address, bool is_local = false);

  absl::Status Prepare(EngineRequest& request) override;
  RemoteToken Issue(EngineRequest& request) override;
  absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) override;
  BeginResult Begin(EngineRequest& request, EngineTurn& turn) override;
  void BeginTogether(std::span<EngineRequest* const> requests, EngineTurn& turn,
                     std::span<BeginResult> results) override;
  absl::Status PostReceive(EngineRequest& receive) override;
  NtStatus Conclude(EngineRequest& request) override;
  void Fail() override;
  void Close() override { queue_pair_.Close(); }

  // For the loop.
  void OnCqEvent() override;
  void OnTick() override;
  void OnCardEvent() override;
  void OnDeviceRemoved() override;

 private:
  // wr_id of requests posted to the card: the serial in their queue, with a bit for receives and one for binds.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static constexpr uint64_t kBindBit = uint64_t{1} << 62;
  static constexpr uint64_t kProbeId = kReceiveBit - 1;

  VerbsEndpoint(std::shared_ptr<VerbsDomain> domain, const QueuePairLimits& limits)
      : domain_(std::move(domain)), queue_pair_(domain_, limits) {}

  VerbsNode& node() { return domain_->context().node(); }

  absl::StatusOr<EnginePeer> EndOfRoute(std::string_view peer_address) RNICD_REQUIRES(mutex_);
  // The end of connecting: a queue pair that does not come to send has failed.
  absl::Status Sends(const absl::Status& sending);

  // Does nothing in the error state: the request stays queued and is cancelled from there.
  BeginResult PostToCard(EngineRequest& request, ibv_send_wr& work);
  BeginResult BeginLocal(EngineRequest& request);

  // The loop.
  bool IsTimeout(ibv_wc_status status);
  void OnSendCompletion(const ibv_wc& completion);
  bool IsInvalidation(const ibv_wc& completion) const;
  Completion ReadReceive(const ibv_wc& completion, const EngineRequest& receive);
  void OnProbeCompletion(const ibv_wc& completion);
  void Probe();
  bool SendProbe();
  void OnFailedByCard();
  void EndProbe();

  const std::shared_ptr<VerbsDomain> domain_;
  VerbsQueuePair queue_pair_;

  // Taken after the engine's, and before those of the card's library.
  Mutex mutex_;
  bool failed_ RNICD_GUARDED_BY(mutex_) = false;
  // The peer at the end of the route that is followed; empty: none.
  std::string followed_ RNICD_GUARDED_BY(mutex_);
  bool peer_is_local_ RNICD_GUARDED_BY(mutex_) = false;
  // True when the peer belongs to an rnicd daemon, which understands the immediate data.
  bool peer_is_rnicd_ RNICD_GUARDED_BY(mutex_) = false;
  // True once the peer has responded, so that silence means a dead peer.
  bool peer_seen_ RNICD_GUARDED_BY(mutex_) = false;
  // A probe is at the card and holds the engine.
  bool probing_ RNICD_GUARDED_BY(mutex_) = false;
  Instant last_probe_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
