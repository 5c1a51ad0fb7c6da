// Events of the connection manager, on the channel's thread.

#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/connection/cm_status.h"
#include "provider/verbs/connection/verbs_connection.h"

namespace rnicd::provider {

void VerbsConnection::OnEvent(CmEvent event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      OnResolved(event.type);
      return;
    // On iWARP the second is the answer as well.
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
      if (Move(State::kConnecting, State::kAnswered)) {
        Report([&event](ConnectorListener& listener) { listener.OnAccepted(event.offer); });
      } else if (Move(State::kAccepting, State::kEstablished)) {
        Establish();
      }
      return;
    // The first means nothing here: an address that moves breaks the connection, and that is found. The second ends
    // the time in which the kernel keeps the queue pair's number from new connections.
    case RDMA_CM_EVENT_ADDR_CHANGE:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    default:
      OnEnd(event, FailureOf(event));
  }
}

void VerbsConnection::OnResolved(rdma_cm_event_type type) {
  int error = 0;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kResolving) {
      return;
    }
    if (!IsOnCard(id_->raw())) {
      error = ENETUNREACH;
    } else if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
      error = channel_->cm().ResolveRoute(id_->raw());
    } else {
      state_ = State::kConnecting;
      error = SendRequest();
    }
  }
  if (error != 0) {
    OnEnd({}, CmStatus(error, "rdma_connect"));
  }
}

// On iWARP the call waits for the peer's host, so it has a thread of its own.
int VerbsConnection::SendRequest() {
  rdma_conn_param parameters = Parameters(offer_);
  if (!is_iwarp()) {
    return channel_->cm().Connect(id_->raw(), parameters);
  }
  const auto connect = [self = shared_from_this(), id = id_, data = offer_.private_data, parameters]() mutable {
    parameters.private_data = data.data();
    const int error = self->channel_->cm().Connect(id->raw(), parameters);
    // The next try may be from the same port, and comes as soon as it may.
    id = nullptr;
    if (error != 0) {
      // A listener that closes resets what it has not looked at.
      self->Later(&VerbsConnection::EndConnecting,
                  CmStatus(error == ECONNRESET ? ECONNREFUSED : error, "rdma_connect"));
    }
  };
  return channel_->RunApart(connect) ? 0 : EAGAIN;
}

// On this thread, so that no event of the connection comes before its upcall.
void VerbsConnection::EndCompleting(const absl::Status& status) {
  absl::Status result = status;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kCompleting) {
      return;
    }
    if (!status.ok()) {
      TakeBackAnswer({});
    } else if (const int error = is_iwarp() ? 0 : channel_->cm().Establish(id_->raw()); error != 0) {
      result = CmStatus(error, "rdma_establish");
    }
    state_ = result.ok() ? State::kEstablished : State::kEnded;
  }
  if (result.ok()) {
    Establish();
  } else {
    Fail(result);
  }
}

void VerbsConnection::EndAccepting(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kAccepting) {
      return;
    }
    channel_->cm().Reject(id_->raw(), {});
    state_ = State::kEnded;
  }
  Fail(status);
}

void VerbsConnection::EndDisconnecting(const absl::Status& /*status*/) { OnEnd({}, absl::OkStatus()); }

// The card sends already; now the engine does.
void VerbsConnection::Establish() {
  std::shared_ptr<QueuePairEngine> engine;
  std::string peer;
  {
    MutexLock lock(mutex_);
    engine = end_.engine;
    peer = peer_address_;
  }
  const absl::Status status = engine != nullptr ? engine->Connect(peer) : MakeError(ErrorReason::CONNECTION_ABORTED);
  if (status.ok()) {
    Report([](ConnectorListener& listener) { listener.OnEstablished(); });
    return;
  }
  {
    MutexLock lock(mutex_);
    state_ = State::kEnded;
    if (id_ != nullptr) {
      channel_->cm().Disconnect(id_->raw());
    }
  }
  Fail(status);
}

VerbsConnection::State VerbsConnection::EndOf(State state) {
  switch (state) {
    case State::kResolving:
    case State::kConnecting:
      return State::kIdle;
    case State::kAnswered:
    case State::kRequested:
      return State::kWithdrawn;
    case State::kEstablished:
      return State::kPeerGone;
    case State::kAccepting:
    case State::kCompleting:
    case State::kDisconnecting:
      return State::kEnded;
    default:
      return state;
  }
}

// CompleteConnect says so where the peer has withdrawn its answer.
void VerbsConnection::OnEnd(const CmEvent& event, const absl::Status& status) {
  State before = State::kEnded;
  {
    MutexLock lock(mutex_);
    before = state_;
    state_ = EndOf(before);
  }
  switch (before) {
    case State::kResolving:
    case State::kConnecting:
      Fail(status, event.offer.private_data);
      return;
    case State::kAccepting:
      Fail(FailureOfAccept(event), event.offer.private_data);
      return;
    case State::kRequested:
    case State::kCompleting:
      Fail(MakeError(ErrorReason::CONNECTION_ABORTED));
      return;
    case State::kEstablished:
      LoseEnd();
      [[fallthrough]];
    case State::kDisconnecting:
      Report([](ConnectorListener& listener) { listener.OnDisconnected(); });
      return;
    default:
      return;
  }
}

// The kernel has failed a queue pair of iWARP with its connection, and the card says nothing of what is posted to it.
void VerbsConnection::LoseEnd() {
  std::shared_ptr<QueuePairEngine> engine;
  {
    MutexLock lock(mutex_);
    engine = is_iwarp() ? end_.engine : nullptr;
  }
  if (engine != nullptr) {
    engine->LosePeer();
    engine->Fail();
    engine->Run();
  }
}

void VerbsConnection::Fail(const absl::Status& status, std::string_view private_data) {
  Report([&](ConnectorListener& listener) { listener.OnFailed(status, private_data); });
}

void VerbsConnection::Report(const std::function<void(ConnectorListener&)>& upcall) {
  std::shared_ptr<ConnectorListener> listener;
  {
    MutexLock lock(mutex_);
    listener = listener_.lock();
  }
  if (listener != nullptr) {
    upcall(*listener);
  }
}

}  // namespace rnicd::provider
