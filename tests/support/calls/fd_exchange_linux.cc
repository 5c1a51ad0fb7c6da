#include "tests/support/calls/fd_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/process/raw_socket.h"

namespace rnicd::test {
namespace {

constexpr size_t kReplyBytesMax = 4096;
constexpr size_t kReplyDescriptorsMax = 8;

// Moves every descriptor out of the control data. True if the packet carried credentials: every packet does, the end of
// the stream does not.
bool TakeControl(msghdr& message, std::vector<UniqueFd>& descriptors) {
  bool is_packet = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    is_packet = true;
    if (header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (size_t at = 0; at < header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + at, sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return is_packet;
}

}  // namespace

// A reply without fields is an empty packet, which looks like the end of the stream; with SO_PASSCRED every packet
// carries credentials.
FdSocket::FdSocket(const std::string& path) : socket_(ConnectUnix(path, SOCK_SEQPACKET)) {
  const int on = 1;
  setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

bool FdSocket::Send(std::string_view bytes, const std::vector<int>& descriptors) {
  iovec piece = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

FdAnswer FdSocket::Receive(std::chrono::milliseconds limit) {
  FdAnswer answer;
  pollfd watched = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (poll(&watched, 1, static_cast<int>(limit.count())) != 1) {
    answer.timed_out = true;
    return answer;
  }
  std::array<char, kReplyBytesMax> bytes;
  iovec piece = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kReplyDescriptorsMax * sizeof(int))> control;
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  const bool is_packet = count >= 0 && TakeControl(message, answer.descriptors);
  answer.replied = is_packet && answer.reply.ParseFromArray(bytes.data(), static_cast<int>(count));
  return answer;
}

std::string FdRequestBytes(const std::string& ticket, uint32_t fd_count) {
  v1::FdRequest request;
  request.set_fd_ticket(ticket);
  request.set_fd_count(fd_count);
  return request.SerializeAsString();
}

FdAnswer ExchangeFd(const std::string& path, std::string_view bytes, const std::vector<int>& descriptors) {
  FdSocket socket(path);
  if (!socket.connected() || !socket.Send(bytes, descriptors)) {
    return FdAnswer();
  }
  FdAnswer answer = socket.Receive();
  if (answer.replied) {
    // The end of the stream: until then the daemon may have descriptors of the file, which count as its memory.
    socket.Receive();
  }
  return answer;
}

FdAnswer FetchFd(const std::string& path, const std::string& ticket) {
  return ExchangeFd(path, FdRequestBytes(ticket, 0));
}

FdAnswer SendFd(const std::string& path, const std::string& ticket, int fd) {
  return ExchangeFd(path, FdRequestBytes(ticket, 1), {fd});
}

}  // namespace rnicd::test
