#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "provider/engine/engine_card.h"

namespace rnicd::provider {

// Connecting: the phase of a connection, its peer, and the engines to notify of its end. A part of a QueuePairEngine,
// used under its lock.
class EngineConnection {
 public:
  enum class Phase : uint8_t {
    kInit,
    // EngineCard::Connect has not returned.
    kConnecting,
    // The peer is in this process and has not connected: requests that need it wait.
    kAwaitingPeer,
    kConnected,
    // The dead peer has been reported to the owner.
    kPeerLost,
    // In the error state; other engines have not been notified yet.
    kFailed,
    kEnded,
  };
  // Engines by address.
  using Engines = std::map<std::string, std::weak_ptr<QueuePairEngine>>;

  Phase phase() const { return phase_; }
  QueuePairState state() const;
  // Null when the peer was destroyed or is not in this process.
  std::shared_ptr<QueuePairEngine> peer() const { return peer_.lock(); }
  bool peer_is_local() const { return peer_is_local_; }
  // False in the error state.
  bool IsTo(std::string_view peer_address) const;

  // Errors: QP_NOT_CONNECTABLE; for End, also when it has failed meanwhile, and the card's.
  absl::Status Begin();
  absl::Status End(const absl::StatusOr<EnginePeer>& peer);
  // The peer has connected. False when that is not the peer.
  bool SetPeerReady(std::string_view peer_address);
  // True, once, when the dead peer must be reported to the owner. An endpoint connected to itself gets the failure
  // through its own requests.
  bool LosePeer(std::string_view own_address);
  // False when it had failed before.
  bool Fail();

  // `visitor` has connected to this engine. It is remembered if this one has not connected yet.
  void AddVisitor(const std::string& address, const std::shared_ptr<QueuePairEngine>& visitor);
  void RemoveVisitor(const std::string& address) { early_visitors_.erase(address); }
  Engines TakeVisitors() { return std::exchange(early_visitors_, {}); }
  // The peer and the visitors, to be notified of the failure: after kFailed comes kEnded.
  Engines TakeAll();

 private:
  Phase phase_ = Phase::kInit;
  std::string peer_address_;
  std::weak_ptr<QueuePairEngine> peer_;
  bool peer_is_local_ = false;
  // Those that connected to this engine before it connected.
  Engines early_visitors_;
};

}  // namespace rnicd::provider
