#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::transport {

// The kernel's methods to identify a peer's process, best first. Probed once, at the start.
enum class IdentityRung : uint8_t {
  // SO_PEERPIDFD, and every process has its own pidfd inode: processes cannot be confused.
  kPeerPidfd,
  // pidfd_open(SO_PEERCRED's pid), checked against the start time. Not covered: a client that passes its socket on and
  // exits before accept, and whose pid is reused before it; its uid is right in any case, but its container is that of
  // the other process.
  kPidfdOpen,
};

// "peer_pidfd": for the log.
const char* IdentityRungName(IdentityRung rung);
// Errors: kUnimplemented when the kernel has no pidfds.
absl::StatusOr<IdentityRung> ProbeIdentityRung();

// A process held by its pidfd.
// Threads: safe.
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
// Describes the process that had the pid while the file was read: the caller must verify which one that was.
// Errors: kUnauthenticated when a file cannot be read or is ambiguous (see ParseCgroups); kResourceExhausted without a
// descriptor left.
absl::StatusOr<core::Container> ReadContainer(const std::string& proc_folder, pid_t pid);

// The process that connected, as the kernel recorded it at that time.
//
// Threat: the client writes whatever it likes into its messages, may pass the socket on, may fork, and may exit and
// have its pid reused during the check. So nothing is taken from a message; this record names the process that called
// connect(2), and all its objects are bound to that process and not to the socket.
//
// Facts read through a pid count only if the process behind the pidfd is seen alive afterwards, its first thread too:
// for one that has ended, control groups of version 1 show no container. A caller whose container cannot be determined
// is refused, because it might be one that the policy's rules for pods would stop. Without a pid, in a namespace that
// the daemon cannot see into, there is nothing to read, and the caller has no container.
// Errors: kUnauthenticated when the process has exited or cannot be named; kResourceExhausted without a descriptor
// left.
struct Peer {
  core::Caller caller;
  std::shared_ptr<const PidfdHandle> process;
};
// Only the name of that process, without a check that it still has its pid.
absl::StatusOr<core::ProcessKey> IdentifyProcess(int socket, IdentityRung rung);
absl::StatusOr<Peer> IdentifyPeer(int socket, IdentityRung rung, core::Role role,
                                  const std::string& proc_folder = "/proc");

}  // namespace rnicd::transport
