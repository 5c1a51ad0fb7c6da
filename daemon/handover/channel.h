#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/system/unique_socket.h"
#include "rnicd/v1/handover.pb.h"

namespace rnicd::handover {

inline constexpr char kSocketName[] = "handover.sock";
inline constexpr size_t kMaxPacketBytes = size_t{64} << 10;
inline constexpr size_t kMaxFilesInPacket = 128;

struct Packet {
  v1::HandoverMessage message;
  std::vector<UniqueFd> files;
};

// A packet to be sent: its descriptors stay open until it is.
struct Outgoing {
  v1::HandoverMessage message;
  std::vector<std::shared_ptr<const UniqueSocket>> sockets = {};
};

// One end of the connection between two generations. A packet arrives whole, in order, or not at all.
// Threads: one at a time.
class Channel {
 public:
  // `socket` is connected, SOCK_SEQPACKET.
  explicit Channel(UniqueSocket socket) : socket_(std::move(socket)) {}

  // Before the sandbox, which forbids to connect. Empty when nobody listens. Errors: kUnavailable naming the path; a
  // peer that is neither root nor this user is kPermissionDenied.
  static absl::StatusOr<std::optional<Channel>> Connect(const std::string& directory);

  int fd() const { return socket_.get(); }

  // Sends what the socket takes now, and keeps the rest for Flush. Errors: kUnavailable, the connection is over.
  absl::Status Send(Outgoing packet);
  absl::Status Flush();
  bool has_unsent() const { return !unsent_.empty(); }
  // Empty: nothing is there yet. Errors: kUnavailable, the connection is over; kInvalidArgument, no packet of this
  // protocol: then it must end.
  absl::StatusOr<std::optional<Packet>> Receive();
  // Waits for the next packet. Errors: those of Receive; kDeadlineExceeded.
  absl::StatusOr<Packet> WaitForPacket(std::chrono::milliseconds timeout);

 private:
  // False when the socket takes nothing now.
  absl::StatusOr<bool> SendOne(const Outgoing& packet);

  UniqueSocket socket_;
  std::deque<Outgoing> unsent_;
};

// The process that called listen() last on this socket, which several may share; 0 if it cannot be told.
int ListeningProcess(int listener);
// A pidfd; invalid if there is no such process.
UniqueFd OpenProcess(int pid);
// Also true for a descriptor that is invalid.
bool HasEnded(const UniqueFd& process);
// Whether the process at the other end is root's or this process's user's.
bool IsTrustedPeer(int socket);

}  // namespace rnicd::handover
