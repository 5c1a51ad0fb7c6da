#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"

namespace rnicd::transport {

// Sends bytes with a descriptor. Returns false when the kernel refuses.
inline bool SendWith(int socket, std::string_view bytes, int fd) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    cmsghdr alignment;
  } control = {};
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

// A TCP socket whose close waits for a minute: it has data to send, and its peer does not read.
class LingeringSocket {
 public:
  LingeringSocket() {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    socket_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    peer_.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::array<char, 65536> bytes = {};
    while (send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait = {.l_onoff = 1, .l_linger = 60};
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)), 0);
  }
  // Ends the wait, so that no thread outlives its test.
  ~LingeringSocket() { Reset(); }

  int get() const { return socket_.get(); }
  // After it was sent: the receiver has the last reference.
  void ForgetOurs() { socket_.Reset(-1); }
  // Ends the wait of the thread that closes it.
  void Reset() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(peer_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_.Reset(-1);
  }

 private:
  UniqueFd socket_;
  UniqueFd peer_;
};

}  // namespace rnicd::transport
