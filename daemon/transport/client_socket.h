#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/system/unique_socket.h"
#include "daemon/core/tenant/tenant.h"
#include "daemon/door/bulkhead.h"

namespace rnicd::transport {

// Makes the kernel refuse descriptors that clients send to the sockets which `listener` will accept: the sender gets
// EPERM. False before Linux 6.16, which has no such option.
bool RefuseDescriptors(int listener);
// True for a socket of such a listener.
bool RefusesDescriptors(int socket);

// True when closing the socket may discard descriptors that its client has sent, which the client can make to block.
bool HoldsDescriptors(int socket, bool carries_packets);

enum class Door : uint8_t { kWorkload, kOperator, kFd };

// What is known of a client's socket from the listener that it came from.
struct SocketKind {
  Door door = Door::kWorkload;
  // True when its client cannot send descriptors.
  bool refuses_descriptors = false;
  // The grant whose door it is; null at the sockets that all share.
  std::shared_ptr<core::Tenant> tenant;

  bool carries_packets() const { return door == Door::kFd; }
};

// The accepted socket of a client, shared by those who watch and those who serve it. With the last of them the
// connection ends: the socket is closed at once if it holds nothing that can block, otherwise by the bulkhead.
// Threads: SetOwner, Keep and PassOn before it is shared, or by one thread; everything else from any.
class ClientSocket {
 public:
  // The bulkhead outlives the socket.
  ClientSocket(UniqueSocket socket, SocketKind kind, door::Bulkhead& closers)
      : socket_(std::move(socket)), kind_(std::move(kind)), closers_(closers) {}
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  int get() const { return socket_.get(); }
  const SocketKind& kind() const { return kind_; }
  // In whose turn the bulkhead closes it, one of its own beside that of the owner's imports; without an owner in that
  // of the user.
  void SetOwner(const std::string& owner) { owner_ = owner; }
  const std::string& owner() const { return owner_; }
  // Destroyed once the socket is closed.
  void Keep(std::shared_ptr<void> kept) { kept_ = std::move(kept); }
  // Another process has a copy, and serves it: the connection goes on when this one is destroyed.
  void PassOn() { passed_on_ = true; }

  // The descriptor as those see it who only read and write.
  static std::shared_ptr<const UniqueSocket> DescriptorOf(const std::shared_ptr<ClientSocket>& socket) {
    return {socket, &socket->socket_};
  }

 private:
  UniqueSocket socket_;
  const SocketKind kind_;
  door::Bulkhead& closers_;
  std::string owner_;
  std::shared_ptr<void> kept_;
  bool passed_on_ = false;
};

}  // namespace rnicd::transport
