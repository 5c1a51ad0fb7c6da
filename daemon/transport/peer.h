#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "daemon/core/caller.h"

namespace rnicd::transport {

// How the kernel lets us name a peer's process, best first. Which one serves is found out once, at the start.
enum class IdentityRung : uint8_t {
  // SO_PEERPIDFD, and every process has its own pidfd inode: nothing can be taken for something else.
  kPeerPidfd,
  // pidfd_open(SO_PEERCRED's pid), checked against the start time. Left open: a client that hands its socket on and
  // dies before accept, and whose pid is used again before it; its uid stays right in any case.
  kPidfdOpen,
};

// "peer_pidfd": for the log.
const char* IdentityRungName(IdentityRung rung);
// Errors: kUnimplemented when the kernel has no pidfds.
absl::StatusOr<IdentityRung> ProbeIdentityRung();

// A process held by its pidfd. Threads: safe.
class PidfdHandle final : public core::ProcessHandle {
 public:
  explicit PidfdHandle(UniqueFd pidfd) : pidfd_(std::move(pidfd)) {}
  bool HasExited(std::chrono::milliseconds wait) const override;
  // Readable when the process has exited. Owned by the handle.
  int pidfd() const { return pidfd_.get(); }

 private:
  const UniqueFd pidfd_;
};

// Who connected, as the kernel recorded it when they did.
//
// Threat: the client writes whatever it likes into its messages, may pass the socket on, may fork, and may die and have
// its pid used again while we look. So nothing is taken from a message; what is recorded here names the process that
// called connect(2), and everything it owns hangs on that process and not on the socket.
// Errors: kUnauthenticated when the process is gone or cannot be named; kResourceExhausted without a descriptor left.
struct Peer {
  core::Caller caller;
  std::shared_ptr<const PidfdHandle> process;
};
absl::StatusOr<Peer> IdentifyPeer(int socket, IdentityRung rung, core::Role role);

}  // namespace rnicd::transport
