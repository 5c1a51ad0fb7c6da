#include "daemon/transport/fd_packet.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files/sent_descriptors_linux.h"
#include "base/status.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "wire/error_detail.h"

namespace rnicd::transport {
namespace {

// A read of nothing is an empty packet, or the end. Only at the end has the peer stopped sending.
bool HasStoppedSending(int socket) {
  pollfd state = {.fd = socket, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, /*timeout=*/0) != 0;
}

// The kernel's limit for one packet. What does not fit is discarded by the kernel, at the cost of the thread that
// reads.
constexpr size_t kDescriptorsMax = 253;

template <size_t kDescriptors>
union ControlBuffer {
  char bytes[CMSG_SPACE(kDescriptors * sizeof(int))];
  cmsghdr alignment;
};

absl::StatusOr<FdPacket> Parse(const char* bytes, size_t size, bool brings_file) {
  v1::FdRequest request;
  FdPacket packet = {.brings_file = brings_file};
  if (!request.ParseFromArray(bytes, static_cast<int>(size)) || request.fd_ticket().size() != packet.ticket.size()) {
    return MakeError(ErrorReason::FD_PACKET_MALFORMED, "fd_ticket");
  }
  if (request.fd_count() != (brings_file ? 1U : 0U)) {
    return MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count");
  }
  std::copy(request.fd_ticket().begin(), request.fd_ticket().end(), packet.ticket.begin());
  return packet;
}

}  // namespace

absl::StatusOr<FdPacket> ReceiveFdPacket(int socket) {
  char bytes[kMaxFdPacketBytes];
  iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t size = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0) {
    return absl::UnavailableError(strerror(errno));
  }
  // There is no room for descriptors, and a packet that is only looked at keeps them.
  const bool brings_file = (message.msg_flags & MSG_CTRUNC) != 0;
  if (size == 0 && !brings_file && HasStoppedSending(socket)) {
    return absl::UnavailableError("the peer closed the connection");
  }
  if (!brings_file) {
    (void)recv(socket, nullptr, 0, MSG_DONTWAIT);
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return MakeError(ErrorReason::FD_PACKET_MALFORMED);
  }
  return Parse(bytes, static_cast<size_t>(size), brings_file);
}

absl::StatusOr<UniqueFd> TakeFile(int socket, Os& os) {
  ControlBuffer<kDescriptorsMax> control = {};
  // No bytes: the packet was read before. Without any iovec, qemu's user mode receives nothing.
  iovec part = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) {
    return absl::UnavailableError(strerror(errno));
  }
  std::vector<UniqueFd> files = TakeDescriptors(message);
  if (files.size() != 1 || (message.msg_flags & MSG_CTRUNC) != 0) {
    return MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count");
  }
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts facts, os.Inspect(files.front().get()));
  if (!facts.is_memory_file && !facts.is_dmabuf) {
    return MakeError(ErrorReason::MEMORY_NOT_MEMORY);
  }
  return std::move(files.front());
}

void SendFdReply(int socket, const absl::StatusOr<UniqueFd>& outcome) {
  v1::FdReply reply;
  if (!outcome.ok()) {
    *reply.mutable_error() = wire::ToErrorDetail(outcome.status());
  }
  std::string bytes = reply.SerializeAsString();
  // A packet without bytes would read as end of file.
  if (bytes.empty()) {
    reply.set_message("ok");
    bytes = reply.SerializeAsString();
  }
  ControlBuffer<1> control = {};
  iovec part = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (outcome.ok() && outcome->valid()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = outcome->get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void SendFdRefusal(int socket, std::string_view refusal, std::chrono::milliseconds wait, uint64_t rate) {
  const ErrorInfo info = {.reason = ErrorReason::RATE_LIMITED,
                          .limit = rate,
                          .used = rate,
                          .requested = 1,
                          .retry_after_ms = static_cast<uint64_t>(wait.count())};
  SendFdReply(socket, MakeErrorWithDetail(info, refusal));
}

}  // namespace rnicd::transport
