#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd {

// Tells when files without a name, such as memfds, have ended: when nobody has them open or mapped any more, nor as an
// O_PATH descriptor, nor on the way in a socket. Only then are their pages free. A watch keeps no file alive; on
// Windows until the next TakeEnded. Errors:  ErrnoStatus of the call. Threads: safe.
class FileWatch {
 public:
  // The same for every descriptor of one file. Never given to another file.
  using Id = int;

  virtual ~FileWatch() = default;

  virtual absl::StatusOr<Id> Add(int fd) = 0;
  // Files that have ended since the last call, each once. Does not wait.
  virtual std::vector<Id> TakeEnded() = 0;
};

// On Linux with inotify: the kernel reports IN_DELETE_SELF when the last reference to a nameless file's directory entry
// goes. On Windows a section has ended when no process has a handle of it; one that is only mapped is taken for ended,
// because no call tells.
// Errors: ErrnoStatus; EMFILE also when fs.inotify.max_user_instances is reached.
// Source: inotify(7); NtQueryObject.
absl::StatusOr<std::unique_ptr<FileWatch>> NewFileWatch();

}  // namespace rnicd
