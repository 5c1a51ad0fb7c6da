#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rnicd::fi {

// Bytes by which a queue pair is named, at most.
inline constexpr size_t kQueuePairAddressMax = 64;
// Each message has this size on the socket, whatever is in it.
inline constexpr size_t kMessageBytes = 352;

// What two endpoints say to each other while they connect: one request, and one answer.
struct Message {
  // kUnreachable: the adapter of the one that would accept finds no queue pair at the request's address.
  enum class Kind : uint16_t { kRequest = 1, kAccept = 2, kReject = 3, kUnreachable = 4 };

  Kind kind = Kind::kRequest;
  // The sender's own; of no family where the socket has it. Port 0: it has no name in the folder.
  sockaddr_storage sender = {};
  // At most kQueuePairAddressMax bytes.
  std::vector<std::byte> queue_pair;
  // At most kConnectDataMax bytes.
  std::vector<std::byte> data;
};

using MessageBytes = std::array<std::byte, kMessageBytes>;

MessageBytes Encode(const Message& message);
// Nothing for what is not a message of this version, or has a length or an address that cannot be.
std::optional<Message> Parse(const MessageBytes& bytes);

// How far a message on a socket has got.
enum class Transfer { kDone, kUnderWay, kEnded, kFailed };

// A message that comes on a socket that does not block.
class IncomingMessage {
 public:
  // kEnded: the peer has closed the socket before; kFailed: errno says why.
  Transfer Receive(int socket);
  const MessageBytes& bytes() const { return bytes_; }

 private:
  MessageBytes bytes_ = {};
  size_t received_ = 0;
};

// A message that goes out on such a socket.
class OutgoingMessage {
 public:
  explicit OutgoingMessage(const Message& message) : bytes_(Encode(message)) {}
  // kFailed: errno says why.
  Transfer Send(int socket);

 private:
  MessageBytes bytes_;
  size_t sent_ = 0;
};

}  // namespace rnicd::fi
