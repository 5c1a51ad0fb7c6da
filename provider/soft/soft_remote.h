#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/engine/engine_card.h"
#include "provider/soft/memory/soft_target.h"
#include "provider/soft/net/soft_frame.h"

namespace rnicd::provider {

class SoftEndpoint;

// The part of a soft queue pair whose peer belongs to another daemon.
//
// Its own requests travel one at a time, piece by piece. The answer to a piece is kept, and the request begins once
// more, so that memory is touched by the engine's runner only. What the peer asks is executed on the worker, against
// the keys of the card as a local peer's; a send without a receive is not kept, but sent again.
// Lifetime: part of its endpoint.
// Threads:  Begin: the runner. OnRequest, OnReply, OnLost: the worker. OnReceivePosted: under the engine's lock.
class SoftRemote {
 public:
  explicit SoftRemote(SoftEndpoint& self) : self_(self) {}
  SoftRemote(const SoftRemote&) = delete;
  SoftRemote& operator=(const SoftRemote&) = delete;

  // Errors: QP_ADDRESS_UNKNOWN where this card reaches no other daemon.
  absl::Status Connect(const SoftRemotePair& peer);
  bool connected() const { return connected_; }
  BeginResult Begin(EngineRequest& request, EngineTurn& turn);
  // This side has failed: the peer hears of it, and a half received message ends.
  void Fail();
  void OnReceivePosted();

  void OnRequest(uint64_t link, const SoftRequest& request);
  void OnReply(uint64_t link, const SoftReply& reply);
  void OnLost(uint64_t link);

 private:
  using Result = SoftReply::Result;
  // A receive that a message is arriving in.
  struct Arriving {
    EngineRequest* receive = nullptr;
    uint64_t total = 0;
    uint64_t done = 0;
  };

  // The own side. Empty: the next piece follows.
  std::optional<CardOutcome> Conclude(EngineRequest& request, EngineTurn& turn, const SoftReply& reply);
  // The bytes of a read reach its sink.
  NtStatus Land(EngineRequest& request, const SoftReply& reply);
  BeginResult SendPiece(EngineRequest& request);
  std::optional<SoftReply> TakeReply();
  void LosePeer();

  // The peer's.
  Result ExecuteAccess(const SoftRequest& request, std::string& bytes);
  Result ExecuteSend(const SoftRequest& request);
  bool TakeReceive(const SoftRequest& request) RNICD_REQUIRES(arriving_mutex_);
  // The result of the receive; empty when the message is not complete.
  std::optional<Completion> Receive(const SoftRequest& request) RNICD_REQUIRES(arriving_mutex_);
  void SendToPeer(Result result, uint64_t serial);
  void SendLater(Result result, uint64_t serial);

  SoftEndpoint& self_;
  // Set by Connect, before anything begins.
  std::atomic<bool> connected_{false};
  // Bytes of the request under way that are done; the runner's.
  uint64_t done_ = 0;

  Mutex mutex_;
  SoftRemotePair peer_ RNICD_GUARDED_BY(mutex_);
  // What a peer has asked before this side connected to it.
  struct {
    SoftRemotePair peer;
    uint64_t serial = 0;
  } early_ RNICD_GUARDED_BY(mutex_);
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  // The request whose answer is awaited; 0: none. With `awaits_receive_`, the peer has no receive for it.
  uint64_t serial_ RNICD_GUARDED_BY(mutex_) = 0;
  bool awaits_receive_ RNICD_GUARDED_BY(mutex_) = false;
  std::optional<SoftReply> reply_ RNICD_GUARDED_BY(mutex_);

  // Serial of the peer's send that waits for a receive; 0: none does.
  std::atomic<uint64_t> waiting_serial_{0};
  Mutex arriving_mutex_;
  Arriving arriving_ RNICD_GUARDED_BY(arriving_mutex_);
  bool failed_ RNICD_GUARDED_BY(arriving_mutex_) = false;
};

}  // namespace rnicd::provider
