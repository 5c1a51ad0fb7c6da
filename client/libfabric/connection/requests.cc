#include "client/libfabric/connection/requests.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/libfabric/connection/handshake.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

// A peer that connects without end must not keep the reader of the queue.
constexpr int kAcceptsPerRound = 64;

// Also tells our handles from others.
fi_ops* HandleOps() {
  static fi_ops ops = FidOperations(Unsupported);
  return &ops;
}

// Null when memory is short.
OwnedInfo InfoOf(const fi_info& endpoint, fid& handle, const Stream& stream) {
  OwnedInfo info(fi_dupinfo(&endpoint));
  if (info == nullptr || !SetInfoAddress(stream.local, &info->src_addr, &info->src_addrlen) ||
      !SetInfoAddress(stream.peer, &info->dest_addr, &info->dest_addrlen)) {
    return nullptr;
  }
  info->handle = &handle;
  return info;
}

// Whether accept may succeed at once after this error.
bool IsOfOnePeer(int error) { return error == EINTR || error == ECONNABORTED || error == EPROTO; }

}  // namespace

// A peer's socket, until its request is taken or rejected.
struct Requests::Request final : public Watched {
  Request(Requests& requests, Stream accepted) : owner(requests), stream(std::move(accepted)) {
    handle.api = {.fclass = FI_CLASS_CONNREQ, .context = nullptr, .ops = HandleOps()};
    handle.object = this;
  }

  void OnReady() override {
    if (!owner.Listen(*this)) {
      owner.Drop(owner.silent_, std::ranges::find(owner.silent_, this, &std::unique_ptr<Request>::get));
    }
  }
  int socket() const { return stream.socket.get(); }

  Requests& owner;
  Stream stream;
  IncomingMessage incoming;
  std::vector<std::byte> queue_pair;
  Handle<fid, Request> handle;
};

Requests::Requests(EventQueue& queue, Listener& listener, fid& endpoint, const fi_info& info)
    : queue_(queue), listener_(listener), endpoint_(endpoint), info_(info) {}

Requests::~Requests() {
  MutexLock lock(queue_.connection_mutex());
  queue_.Unwatch(listener_.descriptor());
  for (const std::unique_ptr<Request>& request : silent_) {
    queue_.Unwatch(request->socket());
  }
}

int Requests::Start() {
  MutexLock lock(queue_.connection_mutex());
  return queue_.Watch(listener_.descriptor(), EPOLLIN, *this);
}

void Requests::OnReady() {
  for (int accepted = 0; accepted < kAcceptsPerRound; ++accepted) {
    if (waiting_.size() >= kWaitingRequestsMax) {
      queue_.Pause(listener_.descriptor());
      return;
    }
    Stream stream;
    const int result = listener_.Accept(&stream);
    if (result == 0) {
      Admit(std::move(stream));
      continue;
    }
    if (result != -EAGAIN && !IsOfOnePeer(-result)) {
      // It stays ready and cannot be served: descriptors or memory are short.
      RNICD_FI_WARN(FI_LOG_EP_CTRL, "cannot accept a connection: %s\n", fi_strerror(-result));
      queue_.Pause(listener_.descriptor());
    }
    return;
  }
}

void Requests::Admit(Stream stream) {
  Request& request = *silent_.emplace_back(std::make_unique<Request>(*this, std::move(stream)));
  // Most have sent their request already.
  if (!Listen(request)) {
    Drop(silent_, std::prev(silent_.end()));
  } else if (silent_.size() > kSilentPeersMax) {
    Drop(silent_, silent_.begin());
  }
}

bool Requests::Listen(Request& request) {
  switch (request.incoming.Receive(request.socket())) {
    case Transfer::kDone:
      return OnRequest(request);
    case Transfer::kUnderWay:
      return queue_.Watch(request.socket(), EPOLLIN, request) == 0;
    default:
      return false;
  }
}

bool Requests::OnRequest(Request& request) {
  std::optional<Message> message = Parse(request.incoming.bytes());
  if (!message || message->kind != Message::Kind::kRequest) {
    return false;
  }
  Stream& stream = request.stream;
  if (AddressBytes(stream.peer) == 0) {
    stream.peer = message->sender;
  }
  if (stream.peer.ss_family != stream.local.ss_family) {
    return false;
  }
  OwnedInfo info = InfoOf(info_, request.handle.api, stream);
  if (info == nullptr) {
    return false;
  }
  request.queue_pair = std::move(message->queue_pair);
  queue_.Unwatch(request.socket());
  waiting_.splice(waiting_.end(), silent_, std::ranges::find(silent_, &request, &std::unique_ptr<Request>::get));
  queue_.Report(FI_CONNREQ, endpoint_, message->data, std::move(info));
  return true;
}

// Also lets the listener go on if it has paused.
void Requests::Drop(List& list, List::iterator request) {
  queue_.Unwatch((*request)->socket());
  list.erase(request);
}

Requests::List::iterator Requests::FindWaiting(const fid* handle) {
  return std::ranges::find_if(waiting_, [handle](const auto& request) { return &request->handle.api == handle; });
}

std::optional<Requests::Taken> Requests::Take(fid* handle) {
  if (handle == nullptr || handle->fclass != FI_CLASS_CONNREQ || handle->ops != HandleOps()) {
    return std::nullopt;
  }
  Requests& requests = ObjectOf<fid, Request>(handle).owner;
  MutexLock lock(requests.queue_.connection_mutex());
  const auto found = requests.FindWaiting(handle);
  if (found == requests.waiting_.end()) {
    return std::nullopt;
  }
  Taken taken = {.stream = std::move((*found)->stream), .queue_pair = std::move((*found)->queue_pair)};
  requests.Drop(requests.waiting_, found);
  return taken;
}

int Requests::Reject(const fid* handle, std::span<const std::byte> data) {
  MutexLock lock(queue_.connection_mutex());
  const auto found = FindWaiting(handle);
  if (found == waiting_.end() || data.size() > kConnectDataMax) {
    return -FI_EINVAL;
  }
  // A socket on which nothing was sent before takes all of it, or its peer is gone.
  OutgoingMessage(
      Message{.kind = Message::Kind::kReject, .sender = {}, .queue_pair = {}, .data = {data.begin(), data.end()}})
      .Send((*found)->socket());
  Drop(waiting_, found);
  return 0;
}

}  // namespace rnicd::fi
