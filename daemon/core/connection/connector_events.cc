// The part of Connector that hears of the card, the clock and the peer's end.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "daemon/core/connection/connector.h"

namespace rnicd::core {

// Hands the card's events on to a worker.
// Lifetime: shared by the attempt; the card has it weakly.
class Connector::Events final : public provider::ConnectorListener {
 public:
  Events(std::weak_ptr<Closable> connector, uint64_t attempt) : connector_(std::move(connector)), attempt_(attempt) {}

  void OnAccepted(const provider::ConnectionOffer& offer) override {
    Later([offer](Connector& connector) { connector.OnAccepted(offer); });
  }
  void OnEstablished() override {
    Later([](Connector& connector) { connector.OnEstablished(); });
  }
  void OnFailed(const absl::Status& status, std::string_view private_data) override {
    Later([status, data = std::string(private_data)](Connector& connector) { connector.OnFailed(status, data); });
  }
  void OnDisconnected() override {
    Later([](Connector& connector) { connector.OnPeerLost(true); });
  }

 private:
  void Later(std::function<void(Connector&)> handle) const {
    if (const std::shared_ptr<Closable> connector = connector_.lock(); connector != nullptr) {
      static_cast<Connector&>(*connector).Later(attempt_, std::move(handle));
    }
  }

  const std::weak_ptr<Closable> connector_;
  const uint64_t attempt_;
};

std::shared_ptr<provider::ConnectorListener> Connector::NewListener() {
  MutexLock lock(mutex_);
  attempt_.listener = std::make_shared<Events>(weak_from_this(), record_.attempt);
  return attempt_.listener;
}

// A session that is ending ends its connectors itself.
void Connector::Later(uint64_t attempt, std::function<void(Connector&)> handle) {
  const std::shared_ptr<Lease> lease = lease_.lock();
  if (lease == nullptr) {
    return;
  }
  if (const absl::StatusOr<SessionGuard> guard = lease->Begin(); guard.ok()) {
    requests_.RunOnWorker([self = shared_from_this(), attempt, handle = std::move(handle)](const absl::Status& start) {
      auto& connector = static_cast<Connector&>(*self);
      bool is_current = start.ok();
      {
        MutexLock lock(connector.mutex_);
        is_current = is_current && connector.record_.attempt == attempt;
      }
      if (is_current) {
        handle(connector);
      }
    });
  }
}

void Connector::OnAccepted(const provider::ConnectionOffer& offer) {
  Ended request;
  {
    MutexLock lock(mutex_);
    if (record_.state != ConnectorState::kConnecting) {
      return;
    }
    record_.received = offer;
    SetState(ConnectorState::kAnswered);
    request = TakeRequest();
  }
  request.Report(absl::OkStatus());
}

void Connector::OnEstablished() {
  Ended request;
  {
    MutexLock lock(mutex_);
    if (record_.state != ConnectorState::kCompleting && record_.state != ConnectorState::kAccepting) {
      return;
    }
    SetState(record_.is_lost ? ConnectorState::kPeerGone : ConnectorState::kConnected);
    events_.disconnect = record_.is_lost;
    request = TakeRequest();
  }
  request.Report(absl::OkStatus());
  Signal();
}

void Connector::OnFailed(const absl::Status& status, std::string_view private_data) {
  {
    MutexLock lock(mutex_);
    if (record_.state == ConnectorState::kConnecting) {
      record_.received = {.private_data = std::string(private_data)};
      record_.was_rejected = !private_data.empty();
    } else if (record_.state == ConnectorState::kRequested || record_.state == ConnectorState::kAnswered) {
      // The call that decides gets the reason.
      SetState(ConnectorState::kEnded);
      record_.failure = status;
    }
  }
  Fail(status);
}

void Connector::OnPeerLost(bool has_disconnected) {
  Ended request;
  {
    MutexLock lock(mutex_);
    record_.is_lost = true;
    record_.peer_is_gone = record_.peer_is_gone || has_disconnected;
    if (record_.state == ConnectorState::kConnected) {
      SetState(ConnectorState::kPeerGone);
      events_.disconnect = true;
    } else if (record_.state == ConnectorState::kDisconnecting && record_.peer_is_gone && record_.is_flushed) {
      SetState(ConnectorState::kEnded);
      request = TakeRequest();
    }
  }
  request.Report(absl::OkStatus());
  Signal();
}

void Connector::OnTimeout(ConnectorState waiting) {
  {
    MutexLock lock(mutex_);
    if (record_.state != waiting) {
      return;
    }
  }
  Fail(MakeError(ErrorReason::CONNECTION_TIMED_OUT));
}

void Connector::Cancel(const absl::Status& status) { Fail(status); }

void Connector::Fail(const absl::Status& status) {
  Ended request;
  {
    ConnectorAttempt ended;
    MutexLock lock(mutex_);
    if (attempt_.done == nullptr) {
      return;
    }
    request = TakeRequest();
    if (record_.state == ConnectorState::kConnecting) {
      ended = EndAttempt();
    } else {
      SetState(ConnectorState::kEnded);
      record_.failure = status;
      ended.device = std::move(attempt_.device);
    }
  }
  request.Report(status);
}

ConnectorAttempt Connector::EndAttempt() {
  SetState(ConnectorState::kIdle);
  ++record_.attempt;
  if (attempt_.pair.has_value()) {
    (*attempt_.pair)->Untie();
  }
  return std::exchange(attempt_, {});
}

void Connector::EndDisconnect() {
  QueuePair* pair = nullptr;
  {
    MutexLock lock(mutex_);
    // It stays until the connector is closed.
    pair = &**attempt_.pair;
  }
  pair->device().Disconnect();
  std::shared_ptr<provider::DeviceConnector> device;
  {
    MutexLock lock(mutex_);
    device = attempt_.device;
    record_.is_flushed = true;
  }
  if (device != nullptr) {
    MutexLock calls(calls_);
    if (const absl::Status status = device->Disconnect(); !status.ok()) {
      Fail(status);
    }
  }
  Ended request;
  {
    MutexLock lock(mutex_);
    if (record_.state == ConnectorState::kDisconnecting && record_.peer_is_gone) {
      SetState(ConnectorState::kEnded);
      request = TakeRequest();
    }
  }
  request.Report(absl::OkStatus());
}

void Connector::Signal() {
  {
    MutexLock lock(mutex_);
    const bool is_due = events_.request.has_value() || events_.disconnect;
    if (!is_due || events_.queued || events_.closed) {
      return;
    }
    events_.queued = true;
  }
  requests_.lease().events().PushSource(std::shared_ptr<EventSource>(shared_from_this(), this));
}

EventSource::Taken Connector::TakeEvent() {
  MutexLock lock(mutex_);
  events_.queued = false;
  if (events_.closed) {
    return {};
  }
  if (events_.request.has_value()) {
    events_.queued = events_.disconnect;
    return {.body = *std::exchange(events_.request, std::nullopt), .again = events_.queued};
  }
  if (!std::exchange(events_.disconnect, false)) {
    return {};
  }
  return {.body = ConnectorDisconnected{.connector = record_.id, .context = events_.disconnect_context}};
}

void Connector::Finalize() {
  ConnectorAttempt attempt;
  {
    MutexLock lock(mutex_);
    events_.closed = true;
    ++record_.attempt;
    SetState(ConnectorState::kEnded);
    attempt = std::exchange(attempt_, {});
  }
  requests_.lease().events().Withdraw(*this);
  attempt.device.reset();
  // One that was never connected can still be.
  if (attempt.pair.has_value() && (*attempt.pair)->state() == QueuePairState::kInit) {
    (*attempt.pair)->Untie();
  }
}

void Connector::ReleaseParents() {
  listener_.Release();
  adapter_.Release();
}

}  // namespace rnicd::core
