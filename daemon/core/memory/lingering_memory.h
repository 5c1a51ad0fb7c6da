#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "base/files/file_watch.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// What a memory object is charged with.
struct MemoryCharges {
  Charge object;
  Charge bytes;
};

// Memory that its session has released while a process still has it: open, mapped, inherited, or in a socket's queue.
// Its pages exist until the last of these is gone, and so do its charges; Resource::kLingeringBytes counts it
// meanwhile. Threads: safe.
class LingeringMemory {
 public:
  // `watch` outlives this.
  explicit LingeringMemory(FileWatch& watch) : watch_(watch) {}

  // For a file that may be kept here. To be called before a client can let go of it.
  absl::StatusOr<FileWatch::Id> Watch(int file) { return watch_.Add(file); }
  // Closes the file. The charges are refunded once it has ended: in this call if nobody else has it.
  void Keep(FileWatch::Id id, UniqueFd file, MemoryCharges charges);
  // Refunds what has ended. Must be called periodically, and before a charge is refused that this may make room for.
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
