#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "base/files/file_watch.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// The charges of a memory object.
struct MemoryCharges {
  Charge object;
  Charge bytes;
};

// Memory that its session has released while a process still has it: open, mapped, inherited, or in a socket's queue.
// Its pages exist until the last of these is gone, and so do its charges; Resource::kLingeringBytes counts it
// meanwhile.
// Threads: safe.
class LingeringMemory {
 public:
  // `watch` outlives this.
  explicit LingeringMemory(FileWatch& watch) : watch_(watch) {}

  // For a file that may be kept here. Must be called before a client can release it.
  absl::StatusOr<FileWatch::Id> Watch(int file) { return watch_.Add(file); }
  // Closes the file. The charges are refunded once it has ended: in this call if no other process has it.
  void Keep(FileWatch::Id id, UniqueFd file, MemoryCharges charges);
  // Refunds the charges of files that have ended. Must be called periodically, and before a charge is refused for which
  // this may make room.
  void Sweep();

 private:
  struct Entry {
    MemoryCharges charges;
    Charge lingering;
  };

  FileWatch& watch_;
  Mutex mutex_;
  // A file that was allocated here and imported has two entries.
  std::multimap<FileWatch::Id, Entry> entries_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
