#include "daemon/core/memory/populating.h"

#include <algorithm>

#include "base/status.h"

namespace rnicd::core {
namespace {

// Half a millisecond's work: a thread's wait for its turn is limited to one such piece of each other owner.
constexpr uint64_t kPopulatedAtOnce = uint64_t{1} << 20;

}  // namespace

Populating::Populating(Os& os, const Work& work)
    : os_(os),
      work_(work),
      piece_bytes_(std::max(kPopulatedAtOnce, work.page_bytes)),
      next_(work.populated),
      done_(work.populated) {}

Populating::Next Populating::RunPiece() {
  uint64_t first = 0;
  uint64_t bytes = 0;
  {
    MutexLock lock(mutex_);
    if (!HasMore()) {
      return EndIfLast();
    }
    first = next_;
    bytes = std::min(piece_bytes_, size() - first);
    next_ += bytes;
    ++running_;
  }
  const absl::Status populated = Populate(first, bytes);
  MutexLock lock(mutex_);
  --running_;
  if (populated.ok()) {
    done_ += bytes;
  } else if (status_.ok()) {
    status_ = populated;
  }
  return HasMore() ? Next::kGoOn : EndIfLast();
}

Populating::Next Populating::Cancel(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (status_.ok()) {
    status_ = why;
  }
  return EndIfLast();
}

Populating::Next Populating::EndIfLast() {
  if (running_ > 0 || ended_) {
    return Next::kLeave;
  }
  ended_ = true;
  return Next::kEnd;
}

// What was populated may end inside a page of the kernel's, and then the next piece begins at that page.
absl::Status Populating::Populate(uint64_t first, uint64_t bytes) {
  if (work_.fresh_file >= 0) {
    RNICD_RETURN_IF_ERROR(os_.Reserve(work_.fresh_file, first, bytes));
  }
  const uint64_t inside = first % os_.page_bytes();
  return os_.Populate(work_.mapping.subspan(first - inside, bytes + inside));
}

absl::Status Populating::status() const {
  MutexLock lock(mutex_);
  return status_;
}

uint64_t Populating::done() const {
  MutexLock lock(mutex_);
  return done_;
}

}  // namespace rnicd::core
