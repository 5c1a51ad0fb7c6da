// The worker's half of a connector: what arrives, and what its listener hears of it.

#include <utility>

#include "base/status.h"
#include "provider/soft/net/soft_connector.h"

namespace rnicd::provider {

void SoftConnector::SetListener(std::weak_ptr<ConnectorListener> listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
}

void SoftConnector::Receive(const SoftMessage& message) {
  {
    MutexLock lock(mutex_);
    // What this end has caused itself comes by no link.
    if (message.link != 0 && message.link != link_) {
      return;
    }
  }
  switch (message.kind) {
    case SoftMessage::Kind::kRequest:
      return;  // The switch makes a connector of it.
    case SoftMessage::Kind::kAnswer:
      return OnAnswer(message);
    case SoftMessage::Kind::kReady:
      return OnReady();
    case SoftMessage::Kind::kEstablished:
      return OnEstablished();
    case SoftMessage::Kind::kEnd:
      return OnEnd(message);
  }
}

void SoftConnector::OnAnswer(const SoftMessage& message) {
  std::shared_ptr<ConnectorListener> listener;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kConnecting) {
      return;
    }
    state_ = State::kAnswered;
    peer_pair_ = AddressOfPair(message);
    listener = listener_.lock();
  }
  if (listener != nullptr) {
    listener->OnAccepted(message.offer);
  }
}

// Meanwhile the owner may close the connector, which then stays closed.
void SoftConnector::OnReady() {
  const absl::Status connected = ConnectPair(State::kAccepting);
  std::shared_ptr<ConnectorListener> listener;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kAccepting) {
      return;
    }
    state_ = connected.ok() ? State::kConnected : State::kEnded;
    if (!connected.ok()) {
      SendEnd(ErrorReason::CONNECTION_ABORTED);
    }
    listener = listener_.lock();
  }
  if (listener == nullptr) {
    return;
  }
  connected.ok() ? listener->OnEstablished() : listener->OnFailed(connected, {});
}

void SoftConnector::OnEstablished() {
  std::shared_ptr<ConnectorListener> listener;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kCompleting) {
      return;
    }
    state_ = State::kConnected;
    listener = listener_.lock();
  }
  if (listener != nullptr) {
    listener->OnEstablished();
  }
}

void SoftConnector::LoseLink(uint64_t link) {
  bool is_over = false;
  {
    MutexLock lock(mutex_);
    is_over = link_ == link;
  }
  if (is_over) {
    OnEnd({.kind = SoftMessage::Kind::kEnd, .reason = ErrorReason::CONNECTION_ABORTED});
  }
}

SoftConnector::State SoftConnector::AfterEnd(State state) {
  switch (state) {
    case State::kConnecting:
      return State::kIdle;  // It may connect again.
    case State::kAnswered:
      return State::kWithdrawn;
    case State::kConnected:
      return State::kDisconnected;
    case State::kCompleting:
    case State::kRequested:
    case State::kAccepting:
    case State::kDisconnecting:
      return State::kEnded;
    case State::kIdle:
    case State::kWithdrawn:
    case State::kDisconnected:
    case State::kEnded:
      return state;
  }
  return state;
}

// An answer that is withdrawn fails CompleteConnect, when that is called.
void SoftConnector::OnEnd(const SoftMessage& message) {
  std::shared_ptr<ConnectorListener> listener;
  bool was_connected = false;
  {
    MutexLock lock(mutex_);
    was_connected = state_ == State::kConnected || state_ == State::kDisconnecting;
    const State before = std::exchange(state_, AfterEnd(state_));
    listener = before == state_ || state_ == State::kWithdrawn ? nullptr : listener_.lock();
  }
  if (listener == nullptr) {
    return;
  }
  was_connected ? listener->OnDisconnected()
                : listener->OnFailed(MakeError(message.reason), message.offer.private_data);
}

}  // namespace rnicd::provider
