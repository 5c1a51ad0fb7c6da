#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rnicd::transport {

// A directory of Unix sockets that belongs to one daemon at a time.
// Lifetime: holds the lock until destroyed; the lock file stays, so that a successor locks the same inode.
class SocketDirectory {
 public:
  // Creates the directory when it is missing and takes its lock. An existing one must belong to root or to this user
  // and must not be writable for others, who could replace the daemon's sockets with their own.
  // Errors: kFailedPrecondition when another daemon holds it or others may write there, kUnavailable when it cannot be
  // created or written, both naming the path.
  static absl::StatusOr<SocketDirectory> Claim(const std::string& path, mode_t mode);

  // A listening, non-blocking socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) at <path>/<name>. A socket left there by a
  // killed daemon is replaced. The name appears only when the socket listens with its final mode.
  // Errors: kUnavailable naming the path; kInvalidArgument when the path is too long for a socket.
  absl::StatusOr<UniqueFd> Listen(const std::string& name, int type, mode_t mode) const;
  // Unlinks the name; open connections continue.
  void Remove(const std::string& name) const;

  const std::string& path() const { return path_; }

 private:
  SocketDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace rnicd::transport
