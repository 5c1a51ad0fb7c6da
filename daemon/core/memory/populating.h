#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/system/os.h"

namespace rnicd::core {

// Populates the mapping of one memory file a piece at a time, on as many threads as take part.
// Lifetime: used until Next::kEnd was returned; nothing is touched afterwards. Outlived by the mapping and the file.
// Threads:  safe; pieces run in parallel, without a lock.
class Populating {
 public:
  // What the calling thread does next.
  enum class Next : uint8_t {
    // Come back for another piece.
    kGoOn,
    // Leave: other threads complete the remaining pieces.
    kLeave,
    // All pieces have ended, successfully or not. Returned to exactly one thread: the last one to finish.
    kEnd,
  };

  struct Work {
    std::span<std::byte> mapping;
    uint64_t page_bytes = 0;
    // Bytes from the start that are populated already.
    uint64_t populated = 0;
    // A file that no client has: its pages are reserved first, which makes populating faster. Or -1.
    int fresh_file = -1;
  };
  Populating(Os& os, const Work& work);

  // Populates a piece that no other thread has begun.
  Next RunPiece();
  // No piece begins any more, and the status is `why`.
  Next Cancel(const absl::Status& why);

  // The first failure, after kEnd. Errors: MEMORY_PAGES_UNAVAILABLE.
  absl::Status status() const;
  // Bytes populated until now.
  uint64_t done() const;
  uint64_t size() const { return work_.mapping.size(); }
  uint64_t piece_bytes() const { return piece_bytes_; }

 private:
  Next EndIfLast() RNICD_REQUIRES(mutex_);
  bool HasMore() const RNICD_REQUIRES(mutex_) { return status_.ok() && next_ < size(); }
  absl::Status Populate(uint64_t first, uint64_t bytes);

  Os& os_;
  const Work work_;
  const uint64_t piece_bytes_;
  mutable Mutex mutex_;
  // Where the next piece begins.
  uint64_t next_ RNICD_GUARDED_BY(mutex_);
  uint64_t done_ RNICD_GUARDED_BY(mutex_);
  // Pieces that are being populated.
  uint32_t running_ RNICD_GUARDED_BY(mutex_) = 0;
  bool ended_ RNICD_GUARDED_BY(mutex_) = false;
  absl::Status status_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
