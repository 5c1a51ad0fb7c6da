#include "client/libfabric/connection/handshake.h"

#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "client/libfabric/limits.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

constexpr uint32_t kMagic = 0x69'66'6E'72;  // "rnfi"
constexpr uint16_t kVersion = 1;

// What is on the socket. Numbers are in the byte order of the two hosts, which share one architecture; the host's
// address is in that of the network.
struct WireMessage {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint16_t queue_pair_bytes;
  uint16_t data_bytes;
  // 4, 6, or 0 for no address.
  uint16_t ip_version;
  uint16_t port;
  std::array<std::byte, 16> host;
  std::array<std::byte, kQueuePairAddressMax> queue_pair;
  std::array<std::byte, kConnectDataMax> data;
};
static_assert(sizeof(WireMessage) == kMessageBytes);

// Where the host is in an address, and its bytes.
std::span<std::byte> HostIn(sockaddr_storage* address) {
  if (address->ss_family == AF_INET6) {
    return std::as_writable_bytes(std::span(reinterpret_cast<sockaddr_in6*>(address)->sin6_addr.s6_addr));
  }
  return std::as_writable_bytes(std::span(&reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr, 1));
}

bool ReadAddress(const WireMessage& wire, sockaddr_storage* address) {
  if (wire.ip_version == 0) {
    return true;
  }
  if (wire.ip_version != 4 && wire.ip_version != 6) {
    return false;
  }
  address->ss_family = wire.ip_version == 6 ? AF_INET6 : AF_INET;
  SetPort(address, wire.port);
  const std::span<std::byte> host = HostIn(address);
  std::copy_n(wire.host.begin(), host.size(), host.begin());
  return true;
}

Transfer Blocked() { return errno == EAGAIN || errno == EINTR ? Transfer::kUnderWay : Transfer::kFailed; }

}  // namespace

MessageBytes Encode(const Message& message) {
  WireMessage wire = {.magic = kMagic,
                      .version = kVersion,
                      .kind = static_cast<uint16_t>(message.kind),
                      .queue_pair_bytes = static_cast<uint16_t>(message.queue_pair.size()),
                      .data_bytes = static_cast<uint16_t>(message.data.size())};
  if (sockaddr_storage sender = message.sender; AddressBytes(sender) != 0) {
    wire.ip_version = sender.ss_family == AF_INET6 ? 6 : 4;
    wire.port = PortOf(sender);
    std::ranges::copy(HostIn(&sender), wire.host.begin());
  }
  std::ranges::copy(message.queue_pair, wire.queue_pair.begin());
  std::ranges::copy(message.data, wire.data.begin());
  return std::bit_cast<MessageBytes>(wire);
}

std::optional<Message> Parse(const MessageBytes& bytes) {
  const auto wire = std::bit_cast<WireMessage>(bytes);
  Message message;
  if (wire.magic != kMagic || wire.version != kVersion || wire.kind < 1 || wire.kind > 4 ||
      wire.queue_pair_bytes > kQueuePairAddressMax || wire.data_bytes > kConnectDataMax ||
      !ReadAddress(wire, &message.sender)) {
    return std::nullopt;
  }
  message.kind = static_cast<Message::Kind>(wire.kind);
  message.queue_pair.assign(wire.queue_pair.begin(), wire.queue_pair.begin() + wire.queue_pair_bytes);
  message.data.assign(wire.data.begin(), wire.data.begin() + wire.data_bytes);
  return message;
}

Transfer IncomingMessage::Receive(int socket) {
  while (received_ < bytes_.size()) {
    const ssize_t count = recv(socket, bytes_.data() + received_, bytes_.size() - received_, MSG_DONTWAIT);
    if (count == 0) {
      return Transfer::kEnded;
    }
    if (count < 0) {
      return Blocked();
    }
    received_ += static_cast<size_t>(count);
  }
  return Transfer::kDone;
}

Transfer OutgoingMessage::Send(int socket) {
  while (sent_ < bytes_.size()) {
    const ssize_t count = send(socket, bytes_.data() + sent_, bytes_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) {
      return Blocked();
    }
    sent_ += static_cast<size_t>(count);
  }
  return Transfer::kDone;
}

}  // namespace rnicd::fi
