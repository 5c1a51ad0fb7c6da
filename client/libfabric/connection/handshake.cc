#include "client/libfabric/connection/handshake.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/libfabric/connection/socket_address.h"
#include "client/libfabric/limits.h"

namespace rnicd::fi {
namespace {

// Numbers are little-endian; the host's address is in the order of the network.
constexpr uint32_t kMagic = 0x69'66'6E'72;  // "rnfi"
constexpr uint16_t kVersion = 1;
constexpr size_t kMagicAt = 0;
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 6;
constexpr size_t kQueuePairBytesAt = 8;
constexpr size_t kDataBytesAt = 10;
constexpr size_t kIpVersionAt = 12;  // 4, 6, or 0 for no address
constexpr size_t kPortAt = 14;
constexpr size_t kHostAt = 16;
constexpr size_t kHostBytes = 16;
constexpr size_t kQueuePairAt = kHostAt + kHostBytes;
constexpr size_t kDataAt = kQueuePairAt + kQueuePairAddressMax;
static_assert(kDataAt + kConnectDataMax == kMessageBytes);

void PutNumber(MessageBytes* bytes, size_t at, size_t size, uint64_t number) {
  for (size_t index = 0; index < size; ++index) {
    (*bytes)[at + index] = static_cast<std::byte>(number >> (8 * index));
  }
}

uint32_t NumberAt(const MessageBytes& bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t index = 0; index < size; ++index) {
    number |= std::to_integer<uint32_t>(bytes[at + index]) << (8 * index);
  }
  return number;
}

std::vector<std::byte> BytesAt(const MessageBytes& bytes, size_t at, size_t size) {
  const std::byte* const first = bytes.data() + at;
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

// Where the host is in an address, and its bytes.
std::span<std::byte> HostIn(sockaddr_storage* address) {
  if (address->ss_family == AF_INET6) {
    return std::as_writable_bytes(std::span(reinterpret_cast<sockaddr_in6*>(address)->sin6_addr.s6_addr));
  }
  return std::as_writable_bytes(std::span(&reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr, 1));
}

void PutAddress(MessageBytes* bytes, sockaddr_storage address) {
  if (AddressBytes(address) == 0) {
    return;
  }
  PutNumber(bytes, kIpVersionAt, 2, address.ss_family == AF_INET6 ? 6 : 4);
  PutNumber(bytes, kPortAt, 2, PortOf(address));
  std::ranges::copy(HostIn(&address), bytes->begin() + kHostAt);
}

bool ReadAddress(const MessageBytes& bytes, sockaddr_storage* address) {
  const uint32_t version = NumberAt(bytes, kIpVersionAt, 2);
  if (version == 0) {
    return true;
  }
  if (version != 4 && version != 6) {
    return false;
  }
  address->ss_family = version == 6 ? AF_INET6 : AF_INET;
  SetPort(address, static_cast<uint16_t>(NumberAt(bytes, kPortAt, 2)));
  const std::span<std::byte> host = HostIn(address);
  std::copy_n(bytes.begin() + kHostAt, host.size(), host.begin());
  return true;
}

Transfer Blocked() { return errno == EAGAIN || errno == EINTR ? Transfer::kUnderWay : Transfer::kFailed; }

}  // namespace

MessageBytes Encode(const Message& message) {
  MessageBytes bytes = {};
  PutNumber(&bytes, kMagicAt, 4, kMagic);
  PutNumber(&bytes, kVersionAt, 2, kVersion);
  PutNumber(&bytes, kKindAt, 2, static_cast<uint16_t>(message.kind));
  PutNumber(&bytes, kQueuePairBytesAt, 2, message.queue_pair.size());
  PutNumber(&bytes, kDataBytesAt, 2, message.data.size());
  PutAddress(&bytes, message.sender);
  std::ranges::copy(message.queue_pair, bytes.begin() + kQueuePairAt);
  std::ranges::copy(message.data, bytes.begin() + kDataAt);
  return bytes;
}

std::optional<Message> Parse(const MessageBytes& bytes) {
  const uint32_t kind = NumberAt(bytes, kKindAt, 2);
  const size_t queue_pair_bytes = NumberAt(bytes, kQueuePairBytesAt, 2);
  const size_t data_bytes = NumberAt(bytes, kDataBytesAt, 2);
  Message message;
  if (NumberAt(bytes, kMagicAt, 4) != kMagic || NumberAt(bytes, kVersionAt, 2) != kVersion || kind < 1 || kind > 4 ||
      queue_pair_bytes > kQueuePairAddressMax || data_bytes > kConnectDataMax || !ReadAddress(bytes, &message.sender)) {
    return std::nullopt;
  }
  message.kind = static_cast<Message::Kind>(kind);
  message.queue_pair = BytesAt(bytes, kQueuePairAt, queue_pair_bytes);
  message.data = BytesAt(bytes, kDataAt, data_bytes);
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
