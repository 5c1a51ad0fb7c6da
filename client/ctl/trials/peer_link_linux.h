#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/system/unique_socket.h"
#include "client/ctl/line/units.h"

namespace rnicd::ctl {

// Longest line that a peer may send, in bytes, with its end.
inline constexpr size_t kPeerLineMax = 512;

// A TCP connection to the other side of 'pingpong', which may be anybody: it can neither make this side wait longer
// than `wait` for a line, nor keep more than a line of it.
// Threads: one.
// Errors:  kDeadlineExceeded; kUnavailable when the peer hung up; kInvalidArgument for a line that is too long.
class PeerLink {
 public:
  // `wait` is the time for each line.
  PeerLink(UniqueSocket socket, std::chrono::milliseconds wait) : socket_(std::move(socket)), wait_(wait) {}

  // Tries until somebody listens there, for at most `wait`: a peer may start later, and its name be known later.
  static absl::StatusOr<PeerLink> Connect(const HostPort& peer, std::chrono::milliseconds wait);

  absl::Status Send(std::string_view line);
  // The next line without its end. `what` names it in errors.
  absl::StatusOr<std::string> Receive(std::string_view what);

 private:
  UniqueSocket socket_;
  std::chrono::milliseconds wait_;
  // Bytes of lines that were not taken yet.
  std::string received_;
};

// Listens for one peer.
// Threads: one.
class PeerListener {
 public:
  // Errors: kUnavailable with the system's reason.
  static absl::StatusOr<PeerListener> Open(const HostPort& at);

  // Where it listens: `at` of Open, with the port that the system chose for 0.
  const HostPort& address() const { return address_; }
  // The first peer that connects. Errors: kDeadlineExceeded.
  absl::StatusOr<PeerLink> Accept(std::chrono::milliseconds wait) const;

 private:
  PeerListener(UniqueSocket socket, HostPort address) : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueSocket socket_;
  HostPort address_;
};

}  // namespace rnicd::ctl
