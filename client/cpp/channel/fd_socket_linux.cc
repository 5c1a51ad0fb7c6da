#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files/sent_descriptors_linux.h"
#include "base/status.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/channel/unix_socket_linux.h"
#include "client/cpp/transport_failure.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

constexpr size_t kPacketBytesMax = 4096;

struct Reply {
  v1::FdReply message;
  std::vector<UniqueFd> descriptors;
};

absl::Status SocketFailure(absl::string_view call, int error_number) {
  const bool late = error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINPROGRESS;
  return TransportFailure(late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable,
                          absl::StrCat(call, " on the fd socket: ", std::strerror(error_number)));
}

absl::Status BrokenReply(std::string_view what) {
  return TransportFailure(absl::StatusCode::kInternal, "the reply on the fd socket " + std::string(what));
}

bool IsClosed(int error_number) { return error_number == EPIPE || error_number == ECONNRESET; }

// `fd` is -1 for a packet without a descriptor.
absl::Status SendPacket(int socket_fd, std::string packet, int fd, Instant deadline) {
  iovec bytes = {.iov_base = packet.data(), .iov_len = packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  // A SEQPACKET socket sends a packet whole or not at all.
  const auto send_once = [&] { return sendmsg(socket_fd, &message, MSG_NOSIGNAL); };
  // A connection that the daemon has refused may be closed already; its reply has the reason.
  return Uninterrupted(socket_fd, deadline, send_once) >= 0 || IsClosed(errno) ? absl::OkStatus()
                                                                               : SocketFailure("sendmsg", errno);
}

// A reply without fields is an empty packet, which reads like a hang-up; but the kernel adds the sender's credentials
// to packets only.
bool IsPacket(msghdr& message, ssize_t received) { return received > 0 || CMSG_FIRSTHDR(&message) != nullptr; }

absl::StatusOr<Reply> ReceiveReply(int socket_fd, Instant deadline) {
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  std::array<char, kPacketBytesMax> packet;
  iovec bytes = {.iov_base = packet.data(), .iov_len = packet.size()};
  // CMSG_LEN, not CMSG_SPACE, for the descriptor: the padding of the latter has room for a second one.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_LEN(sizeof(int))> control = {};
  msghdr message = {};
  const auto receive_once = [&] {
    message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.data(), .msg_controllen = control.size()};
    return recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
  };
  ssize_t received = Uninterrupted(socket_fd, deadline, receive_once);
  if (received < 0 && IsClosed(errno)) {
    // The daemon closed the connection without reading the request. This error is reported once, before its reply.
    received = Uninterrupted(socket_fd, deadline, receive_once);
  }
  if (received < 0) {
    return SocketFailure("recvmsg", errno);
  }
  Reply reply;
  reply.descriptors = TakeDescriptors(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return BrokenReply("carries more than one descriptor, or this process has none free");
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return BrokenReply("is longer than 4096 bytes");
  }
  if (!IsPacket(message, received)) {
    return TransportFailure(absl::StatusCode::kUnavailable, "the daemon hung up on the fd socket");
  }
  if (!reply.message.ParseFromArray(packet.data(), static_cast<int>(received))) {
    return BrokenReply("is not an FdReply");
  }
  return reply;
}

// Until the daemon closes the connection it may have a descriptor of the file, and would charge for released memory.
void AwaitEnd(int socket_fd, Instant deadline) {
  char byte = 0;
  Uninterrupted(socket_fd, deadline, [&] { return recv(socket_fd, &byte, sizeof(byte), 0); });
}

absl::StatusOr<Reply> ExchangeOnce(const std::string& socket_path, const std::string& fd_ticket, int fd,
                                   Instant deadline) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd socket_fd, ConnectUnixSocket(socket_path, SOCK_SEQPACKET, deadline));
  v1::FdRequest request;
  request.set_fd_ticket(fd_ticket);
  request.set_fd_count(fd >= 0 ? 1 : 0);
  RNICD_RETURN_IF_ERROR(SendPacket(socket_fd.get(), request.SerializeAsString(), fd, deadline));
  RNICD_ASSIGN_OR_RETURN(Reply reply, ReceiveReply(socket_fd.get(), deadline));
  AwaitEnd(socket_fd.get(), deadline);
  if (reply.message.has_error()) {
    return wire::StatusFromDetail(reply.message.error(), absl::StatusCode::kUnknown);
  }
  return reply;
}

// Retries while the daemon requests a delay, until the deadline.
absl::StatusOr<Reply> Exchange(const std::string& socket_path, const std::string& fd_ticket, int fd,
                               std::chrono::milliseconds limit) {
  const Instant deadline = Instant::clock::now() + limit;
  for (;;) {
    absl::StatusOr<Reply> reply = ExchangeOnce(socket_path, fd_ticket, fd, deadline);
    const std::chrono::milliseconds wait(ErrorInfoOf(reply.status()).retry_after_ms);
    if (wait.count() == 0 || Instant::clock::now() + wait >= deadline) {
      return reply;
    }
    std::this_thread::sleep_for(wait);
  }
}

}  // namespace

absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& socket_path, const std::string& fd_ticket,
                                         std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(Reply reply, Exchange(socket_path, fd_ticket, -1, deadline));
  if (reply.descriptors.size() != 1) {
    return BrokenReply("carries no descriptor");
  }
  return std::move(reply.descriptors.front());
}

absl::Status SendDescriptor(const std::string& socket_path, const std::string& fd_ticket, int fd,
                            std::chrono::milliseconds deadline) {
  if (fd < 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "fd");
  }
  RNICD_ASSIGN_OR_RETURN(const Reply reply, Exchange(socket_path, fd_ticket, fd, deadline));
  return reply.descriptors.empty() ? absl::OkStatus() : BrokenReply("carries a descriptor nobody asked for");
}

}  // namespace rnicd::inline client
