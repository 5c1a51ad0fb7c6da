#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "ring/geometry.h"
#include "ring/layout.h"

namespace rnicd::ring {

// The daemon's end of a ring. It trusts nothing that the client writes: indices are validated, entries and payload are
// copied once, and what the daemon itself wrote is never read back.
// Lifetime: outlived by the mapping.
// Threads:  Peek, Pop, PrepareToSleep and StayAwake for one thread at a time; Complete, End and the rest are safe.
class DaemonEnd {
 public:
  // `file` is zero-filled memory of geometry.file_bytes(), aligned to a page, that no client has yet. Writes the
  // description. Indices go on from what is in the file.
  DaemonEnd(std::span<std::byte> file, const RingGeometry& geometry);

  enum class Next : uint8_t {
    // Nothing new, or no room for its completion.
    kNothing,
    kEntry,
    // The client's indices are impossible.
    kBroken,
  };
  // Copies the oldest entry. It stays where it is until Pop, and its completion has its room.
  Next Peek(Submission* entry);
  // True if that part of the payload area exists.
  bool PayloadExists(uint32_t offset, uint32_t bytes) const;
  // Copies a part of the payload area that exists. `copy` has room for `bytes`.
  void CopyPayload(uint32_t offset, uint32_t bytes, std::span<uint64_t> copy) const;
  // Takes the oldest entry: the client may overwrite it and its payload. Complete must follow if it has an outcome.
  void Pop(bool has_outcome = true);

  // Requests a doorbell for the next entry. True when there is one already, which the caller must take.
  bool PrepareToSleep();
  void StayAwake();

  // Writes a part of the payload area that exists, or nothing. Before Complete.
  void WriteResult(uint32_t offset, std::span<const std::byte> bytes);
  // Writes the outcome of an entry that was taken, and wakes a client that waits for it with a futex. True when it
  // wants a byte in the pipe.
  bool Complete(const Outcome& outcome);
  // Reports to the client why the ring has ended: no entry is taken any more. Wakes it as Complete does. The first
  // reason counts.
  bool End(uint32_t reason);

  // The processor that the client reports to run on, plus 1.
  uint32_t client_cpu() const;
  void SetCpu(uint32_t cpu_plus_one);
  // Outcomes of entries that were taken, not yet written. For the thread that takes.
  uint32_t unfinished() const;

 private:
  RingHeader& header() const;
  bool Wake() RNICD_REQUIRES(mutex_);

  const std::span<std::byte> file_;
  const RingGeometry geometry_;
  // Private copies of what the daemon wrote.
  uint32_t head_ = 0;
  // Entries taken that have an outcome, like completed_ from the file's first index on.
  uint32_t owed_ = 0;
  bool asleep_ = false;

  Mutex mutex_;
  // Changed under the lock, read by Peek without it.
  std::atomic<uint32_t> completed_ = 0;
  uint32_t wakes_ RNICD_GUARDED_BY(mutex_) = 0;
  bool ended_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::ring
