#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::pipes {

// A process held by a handle, which also keeps its pid from being reused.
// Threads: safe.
class WindowsProcess final : public core::ProcessHandle {
 public:
  explicit WindowsProcess(UniqueFd handle) : handle_(std::move(handle)) {}
  bool HasExited(std::chrono::milliseconds wait) const override;
  // With the rights to wait, to query a little, and to duplicate handles. Owned by this.
  int handle() const { return handle_.get(); }

 private:
  const UniqueFd handle_;
};

// The process that opened a pipe.
//
// Threat: the client writes whatever it likes into its messages, may pass the pipe on, and may exit and have its pid
// reused before the daemon looks. So nothing is taken from a message: the pid is the one that Windows recorded when the
// pipe was opened, and the process behind it must be older than the moment at which the daemon saw the connection, and
// must have the user whose token opened the pipe. One gap stays: a process that exits between its connection and that
// moment, and whose pid is given to another process of the same user; that one could end its own session only.
struct Peer {
  core::Caller caller;
  std::shared_ptr<const WindowsProcess> process;
};

// At the connection, before a byte was read. Errors: kUnauthenticated when the process has exited or cannot be named;
// kResourceExhausted without a handle left.
absl::StatusOr<Peer> IdentifyPeer(int pipe, core::Role role);

// Whether the pipe was opened with the token of this caller's user. Only after a message was read: before that Windows
// has nobody to impersonate. Ends the daemon when it cannot give up the client's identity again.
// Errors: kUnauthenticated.
absl::Status VerifyUser(int pipe, const core::Caller& caller);

// Security identifier of a process's user, as "S-1-5-18"; empty when it cannot be read.
std::string SidOfProcess(int process);
// The same for the daemon.
std::string SidOfThisProcess();

}  // namespace rnicd::pipes
