#include "daemon/transport/client_socket.h"

#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

// Debian 12's headers are older than this.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace rnicd::transport {
namespace {

std::string UserOf(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return absl::StrCat("uid ", credentials.uid);
}

// The kernel discards what there is no room for, and the reader waits for that. Read before the close, because a socket
// that is closed with unread bytes takes from its client the response that it has not read yet.
void Discard(int socket, bool carries_packets) {
  std::array<char, 4096> bytes;
  while (HoldsDescriptors(socket, carries_packets) && recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) >= 0) {
  }
}

}  // namespace

bool RefuseDescriptors(int listener) {
  const int off = 0;
  return setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

bool RefusesDescriptors(int socket) {
  int passes = 1;
  socklen_t size = sizeof(passes);
  return getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &passes, &size) == 0 && passes == 0;
}

// A read without room for control messages that leaves everything where it is: the kernel reports that there is one,
// and installs nothing. On a stream a read of no bytes looks through all that waits. A packet socket shows the first
// packet only, so there every packet counts: asked to pass credentials, the kernel has a control message for each.
bool HoldsDescriptors(int socket, bool carries_packets) {
  if (carries_packets) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  }
  // No bytes. Without any iovec, qemu's user mode does not look.
  iovec part = {};
  msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
}

ClientSocket::~ClientSocket() {
  if (kind_.refuses_descriptors) {
    return;
  }
  if (!passed_on_) {
    shutdown(socket_.get(), SHUT_RDWR);  // Nothing more arrives.
  }
  // The process to which it was passed on may end, and leave the last copy to this one.
  if (passed_on_ || HoldsDescriptors(socket_.get(), kind_.carries_packets())) {
    // Not the turn of its imports: a user's other processes are not to wait for a close.
    const std::string turn = absl::StrCat("close of ", owner_.empty() ? UserOf(socket_.get()) : owner_);
    const auto closed =
        std::make_shared<std::pair<std::shared_ptr<void>, UniqueSocket>>(std::move(kept_), std::move(socket_));
    closers_.Run(turn, [closed, passed_on = passed_on_, carries_packets = kind_.carries_packets()] {
      if (!passed_on) {
        Discard(closed->second.get(), carries_packets);
      }
      closed->second.Reset(-1);
    });
  }
}

}  // namespace rnicd::transport
