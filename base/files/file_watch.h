#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd {

// Detects the end of files without a name, such as memfds: no process has the file open or mapped, not even through an
// O_PATH descriptor, and no socket has it queued. Only then are its pages free. A watch does not keep a file alive,
// except on Windows until the next TakeEnded.
// Errors:  ErrnoStatus of the call.
// Threads: safe.
class FileWatch {
 public:
  // The same for every descriptor of one file. Never reused for another file.
  using Id = int;

  virtual ~FileWatch() = default;

  virtual absl::StatusOr<Id> Add(int fd) = 0;
  // Files that have ended since the last call, each once. Does not wait.
  virtual std::vector<Id> TakeEnded() = 0;
};

// On Linux with inotify: the kernel reports IN_DELETE_SELF when the last reference to a nameless file's directory entry
// goes. On Windows a section has ended when no process has a handle of it; one that is only mapped counts as ended,
// because no call reports mappings.
// Errors: ErrnoStatus; EMFILE also when fs.inotify.max_user_instances is reached.
// Source: inotify(7); NtQueryObject.
absl::StatusOr<std::unique_ptr<FileWatch>> NewFileWatch();

}  // namespace rnicd
