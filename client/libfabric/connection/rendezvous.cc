#include "client/libfabric/connection/rendezvous.h"

#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "client/libfabric/connection/socket_folder.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

const sockaddr* Generic(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }

sockaddr_storage NameOf(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  ask(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  return address;
}

// A TCP socket, bound to the address if that is of a family.
int BoundSocket(int family, const sockaddr_storage& address, UniqueFd* bound) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!socket.valid() || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
    return -errno;
  }
  const auto bytes = static_cast<socklen_t>(AddressBytes(address));
  if (bytes != 0 && bind(socket.get(), Generic(address), bytes) != 0) {
    return -errno;
  }
  *bound = std::move(socket);
  return 0;
}

int BeginConnectByTcp(const sockaddr_storage& peer, const sockaddr_storage& local, Stream* stream) {
  UniqueFd socket;
  if (const int result = BoundSocket(peer.ss_family, local, &socket); result != 0) {
    return result;
  }
  if (connect(socket.get(), Generic(peer), static_cast<socklen_t>(AddressBytes(peer))) != 0 && errno != EINPROGRESS) {
    return -errno;
  }
  stream->local = NameOf(socket.get(), getsockname);
  stream->socket = std::move(socket);
  return 0;
}

}  // namespace

int Listener::Open(const sockaddr_storage& address, std::unique_ptr<Listener>* listener) {
  std::unique_ptr<Listener> opened(new Listener);
  opened->address_ = address;
  int result = 0;
  if (const std::string folder = SocketFolder(); !folder.empty()) {
    result = ListenInFolder(folder, &opened->address_, &opened->path_, &opened->socket_);
  } else if (result = BoundSocket(address.ss_family, address, &opened->socket_); result == 0) {
    opened->address_ = NameOf(opened->socket_.get(), getsockname);
  }
  if (result == 0) {
    *listener = std::move(opened);
  }
  return result;
}

Listener::~Listener() {
  // While it listens, so that nobody else takes the name before.
  if (socket_.valid() && !path_.empty()) {
    unlink(path_.c_str());
  }
}

int Listener::Listen(int backlog) { return listen(socket_.get(), backlog) == 0 ? 0 : -errno; }

int Listener::Accept(Stream* stream) {
  stream->socket = UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!stream->socket.valid()) {
    return -errno;
  }
  if (path_.empty()) {
    stream->local = NameOf(stream->socket.get(), getsockname);
    stream->peer = NameOf(stream->socket.get(), getpeername);
  } else {
    stream->local = address_;
  }
  return 0;
}

int BeginConnect(const sockaddr_storage& peer, const sockaddr_storage& local, Stream* stream) {
  stream->peer = peer;
  const std::string folder = SocketFolder();
  if (folder.empty()) {
    return BeginConnectByTcp(peer, local, stream);
  }
  stream->local = local;
  if (AddressBytes(local) == 0) {
    // The host that reaches it as the system would choose it for its own addresses.
    stream->local = peer;
    SetPort(&stream->local, 0);
  }
  return ConnectInFolder(folder, peer, &stream->socket);
}

}  // namespace rnicd::fi
