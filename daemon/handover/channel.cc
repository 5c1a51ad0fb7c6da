#include "daemon/handover/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "base/files/sent_descriptors_linux.h"
#include "base/status.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::handover {
namespace {

absl::Status Over(const char* call, int error) { return absl::UnavailableError(ErrnoDetail(call, error)); }
std::optional<ucred> PeerOf(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? std::optional(peer) : std::nullopt;
}

absl::Status Over() { return absl::UnavailableError("the other generation has closed the connection"); }

}  // namespace

bool IsTrustedPeer(int socket) {
  const std::optional<ucred> peer = PeerOf(socket);
  return peer.has_value() && (peer->uid == 0 || peer->uid == geteuid());
}

int ListeningProcess(int listener) {
  const std::optional<ucred> peer = PeerOf(listener);
  return peer.has_value() ? peer->pid : 0;
}

UniqueFd OpenProcess(int pid) {
  // A number, because the C library of Debian 12 has no such function.
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(const UniqueFd& process) {
  pollfd ended = {.fd = process.get(), .events = POLLIN, .revents = 0};
  return !process.valid() || poll(&ended, 1, 0) == 1;
}

absl::StatusOr<std::optional<Channel>> Channel::Connect(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kSocketName);
  RNICD_ASSIGN_OR_RETURN(const sockaddr_un address, transport::AddressOf(path));
  UniqueSocket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) {
    return Over("socket", errno);
  }
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return std::nullopt;
    }
    return absl::UnavailableError(absl::StrCat("connect ", path, ": ", strerror(errno)));
  }
  if (!IsTrustedPeer(socket.get())) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": another user's program listens there"));
  }
  return std::optional<Channel>(std::in_place, std::move(socket));
}

absl::Status Channel::Send(Outgoing packet) {
  unsent_.push_back(std::move(packet));
  return unsent_.size() == 1 ? Flush() : absl::OkStatus();
}

absl::Status Channel::Flush() {
  while (!unsent_.empty()) {
    RNICD_ASSIGN_OR_RETURN(const bool sent, SendOne(unsent_.front()));
    if (!sent) {
      break;
    }
    unsent_.pop_front();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Channel::SendOne(const Outgoing& packet) {
  // Its sender had no descriptor left.
  if (std::ranges::any_of(packet.sockets, [](const auto& socket) { return !socket->valid(); })) {
    return true;
  }
  std::string bytes = packet.message.SerializeAsString();
  if (bytes.size() > kMaxPacketBytes || packet.sockets.size() > kMaxFilesInPacket) {
    return absl::InvalidArgumentError("a packet is too large");
  }
  iovec part = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFilesInPacket * sizeof(int))> control = {};
  if (!packet.sockets.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(packet.sockets.size() * sizeof(int));
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(packet.sockets.size() * sizeof(int));
    for (size_t index = 0; index < packet.sockets.size(); ++index) {
      const int fd = packet.sockets[index]->get();
      std::memcpy(CMSG_DATA(first) + index * sizeof(int), &fd, sizeof(int));
    }
  }
  while (sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    // The kernel also bounds the descriptors that are under way.
    if (errno == EAGAIN || errno == ETOOMANYREFS || errno == ENOBUFS) {
      return false;
    }
    if (errno != EINTR) {
      return Over("sendmsg", errno);
    }
  }
  return true;
}

absl::StatusOr<std::optional<Packet>> Channel::Receive() {
  // One byte more, so that a packet that is too long does not look like a whole one.
  std::string bytes(kMaxPacketBytes + 1, '\0');
  iovec part = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFilesInPacket * sizeof(int))> control = {};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t size = -1;
  do {
    size = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    return errno == EAGAIN ? absl::StatusOr<std::optional<Packet>>(std::nullopt) : Over("recvmsg", errno);
  }
  Packet packet{.message = {}, .files = TakeDescriptors(header)};
  if (size == 0) {
    return Over();
  }
  bytes.resize(static_cast<size_t>(size));
  // Without a descriptor left here some are missing: the packet is then not what its handler wants.
  if (bytes.size() > kMaxPacketBytes || (header.msg_flags & MSG_TRUNC) != 0 || !packet.message.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("not a message of a hand-over");
  }
  return packet;
}

absl::StatusOr<Packet> Channel::WaitForPacket(std::chrono::milliseconds timeout) {
  while (true) {
    RNICD_ASSIGN_OR_RETURN(std::optional<Packet> packet, Receive());
    if (packet.has_value()) {
      return *std::move(packet);
    }
    pollfd waits = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&waits, 1, static_cast<int>(timeout.count()));
    if (ready == 0) {
      return absl::DeadlineExceededError("the other generation does not answer");
    }
    if (ready < 0 && errno != EINTR) {
      return Over("poll", errno);
    }
  }
}

}  // namespace rnicd::handover
