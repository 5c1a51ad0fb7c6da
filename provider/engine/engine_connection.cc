#include "provider/engine/engine_connection.h"

#include "base/status.h"

namespace rnicd::provider {

QueuePairState EngineConnection::state() const {
  if (phase_ <= Phase::kConnecting) {
    return QueuePairState::kInit;
  }
  return phase_ <= Phase::kPeerLost ? QueuePairState::kReadyToSend : QueuePairState::kError;
}

bool EngineConnection::IsTo(std::string_view peer_address) const {
  return state() == QueuePairState::kReadyToSend && peer_address_ == peer_address;
}

absl::Status EngineConnection::Begin() {
  if (phase_ != Phase::kInit) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  phase_ = Phase::kConnecting;
  return absl::OkStatus();
}

absl::Status EngineConnection::End(const absl::StatusOr<EnginePeer>& peer) {
  if (phase_ != Phase::kConnecting) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");  // Flushed meanwhile.
  }
  phase_ = Phase::kInit;
  RNICD_RETURN_IF_ERROR(peer.status());
  peer_address_ = peer->address;
  peer_ = peer->engine;
  peer_is_local_ = peer->engine != nullptr;
  phase_ = peer_is_local_ ? Phase::kAwaitingPeer : Phase::kConnected;
  return absl::OkStatus();
}

bool EngineConnection::SetPeerReady(std::string_view peer_address) {
  if (peer_address_ != peer_address) {
    return false;
  }
  phase_ = phase_ == Phase::kAwaitingPeer ? Phase::kConnected : phase_;
  return true;
}

bool EngineConnection::LosePeer(std::string_view own_address) {
  if ((phase_ != Phase::kAwaitingPeer && phase_ != Phase::kConnected) || peer_address_ == own_address) {
    return false;
  }
  phase_ = Phase::kPeerLost;
  return true;
}

bool EngineConnection::Fail() {
  if (state() == QueuePairState::kError) {
    return false;
  }
  phase_ = Phase::kFailed;
  return true;
}

void EngineConnection::AddVisitor(const std::string& address, const std::shared_ptr<QueuePairEngine>& visitor) {
  if (state() == QueuePairState::kInit) {
    early_visitors_[address] = visitor;
  }
}

EngineConnection::Engines EngineConnection::TakeAll() {
  phase_ = Phase::kEnded;
  Engines all = TakeVisitors();
  all[peer_address_] = peer_;
  return all;
}

}  // namespace rnicd::provider
