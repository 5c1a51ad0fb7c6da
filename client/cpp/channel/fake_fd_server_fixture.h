#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "gtest/gtest.h"
#include "rnicd/v1/fd_channel.pb.h"

namespace rnicd::inline client {

// A short-named directory that is gone with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = "/tmp/rnicd-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Listens as the daemon's fd socket does and hands each connection to `serve`, on one thread of its own.
class FakeFdServer {
 public:
  FakeFdServer(const std::string& path, std::function<void(int)> serve)
      : listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)), stop_(eventfd(0, EFD_CLOEXEC)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    thread_ = std::thread([this, serve = std::move(serve)] { Run(serve); });
  }
  FakeFdServer(const FakeFdServer&) = delete;
  FakeFdServer& operator=(const FakeFdServer&) = delete;
  ~FakeFdServer() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
  }

 private:
  void Run(const std::function<void(int)>& serve) {
    std::array<pollfd, 2> waits = {pollfd{listener_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    while (poll(waits.data(), waits.size(), -1) >= 0 && waits[1].revents == 0) {
      const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      serve(connection.get());
    }
  }

  UniqueFd listener_;
  UniqueFd stop_;
  std::thread thread_;
};

// The request of the packet that waits on the connection, and the descriptor that came with it.
inline std::pair<v1::FdRequest, UniqueFd> ReceiveFdRequest(int connection) {
  std::array<char, 4096> packet;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  iovec bytes = {.iov_base = packet.data(), .iov_len = packet.size()};
  msghdr message = {
      .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.data(), .msg_controllen = control.size()};
  const ssize_t received = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  std::pair<v1::FdRequest, UniqueFd> result;
  EXPECT_TRUE(received >= 0 && result.first.ParseFromArray(packet.data(), static_cast<int>(received)));
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    result.second.Reset(fd);
  }
  return result;
}

// Sends one packet with these descriptors. False when the peer is gone.
inline bool SendFdPacket(int connection, std::string packet, const std::vector<int>& fds) {
  iovec bytes = {.iov_base = packet.data(), .iov_len = packet.size()};
  msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control = {};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) >= 0;
}

}  // namespace rnicd::inline client
