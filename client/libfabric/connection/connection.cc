#include "client/libfabric/connection/connection.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "client/libfabric/connection/requests.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

Message MessageOf(Message::Kind kind, const sockaddr_storage& sender, const Connectable& endpoint,
                  std::span<const std::byte> data) {
  const std::span<const std::byte> queue_pair = endpoint.QueuePairAddress();
  return {.kind = kind,
          .sender = sender,
          .queue_pair = {queue_pair.begin(), queue_pair.end()},
          .data = {data.begin(), data.end()}};
}

// A closed socket has several names, by the moment and the kind of socket.
int Unified(int error) { return error == EPIPE ? ECONNRESET : error; }

}  // namespace

int Connection::Connect(EventQueue& queue, Connectable& endpoint, const sockaddr_storage& peer,
                        std::span<const std::byte> data, std::unique_ptr<Connection>* connection,
                        const sockaddr_storage& local) {
  if (data.size() > kConnectDataMax || endpoint.QueuePairAddress().size() > kQueuePairAddressMax ||
      AddressBytes(peer) == 0) {
    return -FI_EINVAL;
  }
  std::unique_ptr<Connection> connecting(new Connection);
  connecting->endpoint_ = &endpoint;
  connecting->state_ = State::kConnecting;
  if (const int result = connecting->Begin(queue, peer, local, data); result != 0) {
    return result;
  }
  *connection = std::move(connecting);
  return 0;
}

int Connection::Begin(EventQueue& queue, const sockaddr_storage& to, const sockaddr_storage& from,
                      std::span<const std::byte> data) {
  MutexLock lock(queue.connection_mutex());
  if (queue.unreachable().contains(AddressText(to))) {
    RNICD_FI_WARN(FI_LOG_EP_CTRL, "%s is reached by another daemon, with which this one's adapter has no connection\n",
                  AddressText(to).c_str());
    return -FI_EHOSTUNREACH;
  }
  queue_ = &queue;
  int error = -BeginConnect(to, from, &stream_);
  if (error == 0) {
    outgoing_.emplace(MessageOf(Message::Kind::kRequest, stream_.local, *endpoint_, data));
    error = Send();
  }
  if (error == ECONNREFUSED) {
    // Whether that is known now or later depends on the kind of socket.
    Fail(error, {});
    return 0;
  }
  return -error;
}

std::unique_ptr<Connection> Connection::Take(fid* request) {
  std::optional<Requests::Taken> taken = Requests::Take(request);
  if (!taken) {
    return nullptr;
  }
  std::unique_ptr<Connection> connection(new Connection);
  connection->stream_ = std::move(taken->stream);
  connection->requesting_queue_pair_ = std::move(taken->queue_pair);
  return connection;
}

int Connection::Accept(EventQueue& queue, Connectable& endpoint, std::span<const std::byte> data) {
  MutexLock lock(queue.connection_mutex());
  if (state_ != State::kRequested || data.size() > kConnectDataMax ||
      endpoint.QueuePairAddress().size() > kQueuePairAddressMax) {
    return -FI_EINVAL;
  }
  state_ = State::kOver;
  if (const int result = endpoint.ConnectQueuePair(requesting_queue_pair_); result != 0) {
    if (result == -FI_ENOENT) {
      // Said once: a peer that does not take it learns of the end of the socket.
      OutgoingMessage(MessageOf(Message::Kind::kUnreachable, stream_.local, endpoint, {})).Send(stream_.socket.get());
    }
    return result;
  }
  queue_ = &queue;
  endpoint_ = &endpoint;
  outgoing_.emplace(MessageOf(Message::Kind::kAccept, stream_.local, endpoint, data));
  if (const int error = Send(); error != 0) {
    Close();
    return -error;
  }
  state_ = State::kConnected;
  queue.Report(FI_CONNECTED, endpoint.Fid());
  return 0;
}

void Connection::Shutdown() {
  if (queue_ == nullptr) {
    return;
  }
  MutexLock lock(queue_->connection_mutex());
  if (stream_.socket.valid()) {
    // The queue sees the end as one by the peer.
    shutdown(stream_.socket.get(), SHUT_RDWR);
  }
}

Connection::~Connection() {
  if (queue_ != nullptr) {
    MutexLock lock(queue_->connection_mutex());
    Close();
  }
}

void Connection::Close() {
  state_ = State::kOver;
  if (stream_.socket.valid() && queue_ != nullptr) {
    queue_->Unwatch(stream_.socket.get());
  }
  stream_.socket.Reset(-1);
}

void Connection::OnReady() {
  if (outgoing_) {
    if (const int error = Send(); error != 0) {
      state_ == State::kConnecting ? Fail(error, {}) : LookForEnd();
    }
  } else if (state_ == State::kConnecting) {
    ReceiveAnswer();
  } else {
    LookForEnd();
  }
}

// The socket's errors come from here, too: those of a connect that failed.
int Connection::Send() {
  const Transfer transfer = outgoing_->Send(stream_.socket.get());
  if (transfer == Transfer::kFailed) {
    return Unified(errno);
  }
  const bool done = transfer == Transfer::kDone;
  if (done) {
    outgoing_.reset();
  }
  return -queue_->Watch(stream_.socket.get(), done ? EPOLLIN : EPOLLOUT, *this);
}

void Connection::ReceiveAnswer() {
  const Transfer transfer = incoming_.Receive(stream_.socket.get());
  if (transfer == Transfer::kEnded || transfer == Transfer::kFailed) {
    Fail(transfer == Transfer::kEnded ? ECONNRESET : Unified(errno), {});
  } else if (transfer == Transfer::kDone) {
    const std::optional<Message> answer = Parse(incoming_.bytes());
    if (answer && answer->kind != Message::Kind::kRequest) {
      OnAnswer(*answer);
    } else {
      Fail(EPROTO, {});
    }
  }
}

void Connection::OnAnswer(const Message& answer) {
  if (answer.kind == Message::Kind::kReject) {
    Fail(ECONNREFUSED, answer.data);
  } else if (answer.kind == Message::Kind::kUnreachable) {
    queue_->unreachable().insert(AddressText(stream_.peer));
    Fail(EHOSTUNREACH, {});
  } else if (const int result = endpoint_->ConnectQueuePair(answer.queue_pair); result != 0 && !HasHungUp()) {
    Fail(-result, {});
  } else {
    // A peer that has ended since it accepted is connected first: the end of its socket is what is seen next.
    state_ = State::kConnected;
    queue_->Report(FI_CONNECTED, endpoint_->Fid(), answer.data);
  }
}

bool Connection::HasHungUp() const {
  char more = 0;
  return recv(stream_.socket.get(), &more, sizeof(more), MSG_DONTWAIT | MSG_PEEK) == 0;
}

// Nothing is said on the socket after the handshake; who says something is treated as one that hangs up.
void Connection::LookForEnd() {
  char more = 0;
  if (recv(stream_.socket.get(), &more, sizeof(more), MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  Close();
  endpoint_->OnPeerGone();
  queue_->Report(FI_SHUTDOWN, endpoint_->Fid());
}

void Connection::Fail(int error, std::span<const std::byte> data) {
  RNICD_FI_INFO(FI_LOG_EP_CTRL, "no connection with %s: %s\n", AddressText(stream_.peer).c_str(), fi_strerror(error));
  Close();
  queue_->ReportError(endpoint_->Fid(), error, data);
}

}  // namespace rnicd::fi
