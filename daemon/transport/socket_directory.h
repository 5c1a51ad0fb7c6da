#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::transport {

// The file of a socket that listens: only it may have the socket's name.
struct SocketFile {
  dev_t device = 0;
  // Not given to another file while the listener is open.
  ino_t inode = 0;
  friend bool operator==(const SocketFile&, const SocketFile&) = default;
};

// Errors: kInvalidArgument, too long for a socket.
absl::StatusOr<sockaddr_un> AddressOf(const std::string& path);

// Behind the name of a socket that does not listen yet.
inline constexpr char kUnfinishedSuffix[] = ".new";

struct NamedListener {
  UniqueFd listener;
  SocketFile file;
};

// A directory of Unix sockets that belongs to one daemon at a time.
// Lifetime: holds the lock until destroyed; the lock file stays, so that a successor locks the same inode.
// Threads: one at a time; `path` from any.
class SocketDirectory {
 public:
  // Makes the directory with this mode if there is none. Errors: kUnavailable naming the path.
  static absl::Status Make(const std::string& path, mode_t mode);
  // Creates the directory when it is missing and takes its lock. An existing one must belong to root or to this user
  // and must not be writable for others, who could replace the daemon's sockets with their own.
  // Errors: kFailedPrecondition when another daemon holds it or others may write there, kUnavailable when it cannot be
  // created or written, both naming the path.
  static absl::StatusOr<SocketDirectory> Claim(const std::string& path, mode_t mode);
  // As Claim, with a copy of the lock from the daemon that holds it: there is no moment at which nobody does.
  static absl::StatusOr<SocketDirectory> Adopt(const std::string& path, mode_t mode, UniqueFd lock);

  // The directory `name` in this one, for which the lock of this one holds too. Makes it with this mode if there is
  // none. Errors: as Claim.
  absl::StatusOr<SocketDirectory> Sub(const std::string& name, mode_t mode) const;

  // Claims the directory anew when it, or its lock, was removed or replaced since. Errors: as Claim; the next call
  // tries again.
  absl::Status KeepClaim();

  // A listening, non-blocking socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) at <path>/<name>. A file that is there is
  // replaced: the lock gives its owner the names, too. The name appears only when the socket listens with its final
  // mode. Errors: kUnavailable naming the path; kInvalidArgument when the path is too long for a socket.
  absl::StatusOr<NamedListener> Listen(const std::string& name, int type, mode_t mode) const;
  // Makes this process the one that clients see behind a listener that another daemon has made, and sets the mode of
  // its name. Errors: kUnavailable naming the path.
  absl::Status ListenAgain(const std::string& name, const NamedListener& named, mode_t mode) const;
  // Whether the name is that of this file.
  bool Has(const std::string& name, const SocketFile& file) const;
  // Unlinks the name if it is that of this file; open connections continue.
  void Remove(const std::string& name, const SocketFile& file) const;

  const std::string& path() const { return path_; }
  // For Adopt. Errors: kUnavailable without descriptors.
  absl::StatusOr<UniqueFd> CopyLock() const;

 private:
  SocketDirectory(std::string path, mode_t mode, UniqueFd lock)
      : path_(std::move(path)), mode_(mode), lock_(std::move(lock)) {}

  std::string path_;
  mode_t mode_;
  // Not valid for a directory in a claimed one.
  UniqueFd lock_;
};

}  // namespace rnicd::transport
