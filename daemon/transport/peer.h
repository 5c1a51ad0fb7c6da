#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
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
  // dies before accept, and whose pid is used again before it; its uid stays right in any case, its container is that
  // of the other process.
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

// The container of a process, from its cgroup file in `proc_folder` and from that of the process "self", the daemon's.
// True of the process that had the pid while the file was read: the caller makes sure which one that was.
// Errors: kUnauthenticated when a file cannot be read or does not say one thing (see ParseCgroups); kResourceExhausted
// without a descriptor left.
absl::StatusOr<core::Container> ReadContainer(const std::string& proc_folder, pid_t pid);

// Who connected, as the kernel recorded it when they did.
//
// Threat: the client writes whatever it likes into its messages, may pass the socket on, may fork, and may die and have
// its pid used again while we look. So nothing is taken from a message; what is recorded here names the process that
// called connect(2), and everything it owns hangs on that process and not on the socket.
//
// What is read of a pid counts only if the process behind the pidfd is seen alive afterwards, its first thread too: of
// one that has ended, control groups of version 1 say that it is in no container. A caller whose container cannot be
// told is refused, because it might be one that the policy's rules for pods would stop. Without a pid, in a namespace
// that the daemon cannot see into, there is nothing to read, and the caller has no container.
// Errors: kUnauthenticated when the process is gone or cannot be named; kResourceExhausted without a descriptor left.
struct Peer {
  core::Caller caller;
  std::shared_ptr<const PidfdHandle> process;
};
absl::StatusOr<Peer> IdentifyPeer(int socket, IdentityRung rung, core::Role role,
                                  const std::string& proc_folder = "/proc");

}  // namespace rnicd::transport
