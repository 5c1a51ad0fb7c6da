#include "provider/soft/net/soft_connector.h"

#include "base/status.h"
#include "provider/soft/net/soft_switch.h"

namespace rnicd::provider {
namespace {

using Kind = SoftMessage::Kind;

// Private data arrive at these lengths, as on RoCE, so that no program relies on exact ones.
constexpr size_t kRequestBytes = 56;
constexpr size_t kAnswerBytes = 196;
constexpr size_t kRejectBytes = 148;

std::string Padded(std::string_view data, size_t bytes) {
  std::string padded(data);
  padded.resize(bytes);
  return padded;
}

std::shared_ptr<QueuePairEngine> EngineOf(DeviceQueuePair& pair) {
  return static_cast<EngineQueuePair&>(pair).engine();
}

}  // namespace

SoftConnector::SoftConnector(SoftSwitch& net, const IpAddress& host, std::weak_ptr<ConnectorListener> listener)
    : net_(net), local_{.ip = host}, listener_(std::move(listener)) {}

SoftConnector::SoftConnector(SoftSwitch& net, const SoftMessage& request)
    : net_(net),
      state_(State::kRequested),
      number_(request.connector),
      link_(request.link),
      local_(request.to),
      peer_(request.from),
      peer_pair_(AddressOfPair(request)) {}

// --- the owner ---

absl::Status SoftConnector::Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) {
  MutexLock lock(mutex_);
  if (state_ != State::kIdle) {
    return MakeError(ErrorReason::CONNECTOR_STATE, "connector_id");
  }
  if (path.local.ip != local_.ip) {
    return MakeError(ErrorReason::ADDRESS_INVALID, "local");
  }
  net_.RemoveConnector(number_);
  number_ = net_.AddConnector(weak_from_this());
  local_ = path.local;
  peer_ = path.peer;
  link_ = net_.LinkTo(peer_.ip);
  pair_ = EngineOf(pair);
  state_ = State::kConnecting;
  net_.Send(Offering(Kind::kRequest, offer, kRequestBytes));
  return absl::OkStatus();
}

// The own message goes first. The lock delays its delivery, so what the listener sends then follows kReady.
absl::Status SoftConnector::CompleteConnect(const ConnectionOffer& offer) {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kAnswered && state_ != State::kWithdrawn) {
      return MakeError(ErrorReason::CONNECTOR_STATE, "connector_id");
    }
    if (std::exchange(state_, State::kCompleting) == State::kWithdrawn) {
      FailLater(ErrorReason::CONNECTION_ABORTED);
      return absl::OkStatus();
    }
    read_limit_ = offer.outbound_read_limit;
  }
  const absl::Status connected = ConnectPair(State::kCompleting);
  MutexLock lock(mutex_);
  if (connected.ok()) {
    net_.Send({.kind = Kind::kEstablished, .from = local_, .to = local_, .connector = number_});
    net_.Send({.kind = Kind::kReady, .from = local_, .to = peer_, .connector = PeerOf(number_), .link = link_});
  } else {
    FailLater(ErrorInfoOf(connected).reason);
    SendEnd(ErrorReason::CONNECTION_ABORTED);
  }
  return absl::OkStatus();
}

absl::Status SoftConnector::Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) {
  MutexLock lock(mutex_);
  if (state_ != State::kRequested) {
    return MakeError(ErrorReason::CONNECTION_ABORTED);
  }
  pair_ = EngineOf(pair);
  read_limit_ = offer.outbound_read_limit;
  state_ = State::kAccepting;
  net_.Send(Offering(Kind::kAnswer, offer, kAnswerBytes));
  return absl::OkStatus();
}

absl::Status SoftConnector::Reject(std::string_view private_data) {
  MutexLock lock(mutex_);
  if (state_ != State::kRequested && state_ != State::kAnswered) {
    return MakeError(ErrorReason::CONNECTION_ABORTED);
  }
  state_ = State::kEnded;
  SendEnd(ErrorReason::CONNECTION_REFUSED, Padded(private_data, kRejectBytes));
  return absl::OkStatus();
}

absl::Status SoftConnector::Disconnect() {
  MutexLock lock(mutex_);
  if (state_ != State::kConnected && state_ != State::kDisconnected) {
    return MakeError(ErrorReason::CONNECTOR_STATE, "connector_id");
  }
  state_ = state_ == State::kConnected ? State::kDisconnecting : State::kEnded;
  SendEnd(ErrorReason::CONNECTION_ABORTED);
  return absl::OkStatus();
}

void SoftConnector::Close() {
  MutexLock lock(mutex_);
  if (state_ != State::kIdle && state_ != State::kEnded) {
    SendEnd(state_ == State::kRequested ? ErrorReason::CONNECTION_REFUSED : ErrorReason::CONNECTION_ABORTED);
  }
  state_ = State::kEnded;
  net_.RemoveConnector(number_);
}

SoftMessage SoftConnector::Offering(Kind kind, const ConnectionOffer& offer, size_t bytes) const {
  SoftMessage message{.kind = kind,
                      .from = local_,
                      .to = peer_,
                      .connector = PeerOf(number_),
                      .queue_pair = pair_->address(),
                      .offer = offer,
                      .link = link_};
  message.offer.private_data = Padded(offer.private_data, bytes);
  return message;
}

void SoftConnector::SendEnd(ErrorReason reason, std::string private_data) {
  net_.Send({.kind = Kind::kEnd,
             .from = local_,
             .to = peer_,
             .connector = PeerOf(number_),
             .offer = {.private_data = std::move(private_data)},
             .reason = reason,
             .link = link_});
}

void SoftConnector::FailLater(ErrorReason reason) {
  net_.Send({.kind = Kind::kEnd, .from = local_, .to = local_, .connector = number_, .reason = reason});
}

// --- queue pairs ---

absl::Status SoftConnector::ConnectPair(State state) {
  std::shared_ptr<QueuePairEngine> pair;
  std::string peer_pair;
  uint32_t read_limit = 0;
  {
    MutexLock lock(mutex_);
    if (state_ != state) {
      return MakeError(ErrorReason::CONNECTION_ABORTED);
    }
    pair = pair_;
    peer_pair = peer_pair_;
    read_limit = read_limit_;
  }
  absl::Status connected = pair->Connect(peer_pair, read_limit);
  return FailedWith(connected, ErrorReason::QP_ADDRESS_UNKNOWN) ? MakeError(ErrorReason::CONNECTION_ABORTED)
                                                                : connected;
}

}  // namespace rnicd::provider
