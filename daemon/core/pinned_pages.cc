#include "daemon/core/pinned_pages.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "daemon/core/heap_cost.h"

namespace rnicd::core {

// --- PageCounts ---

uint64_t PageCounts::Raise(uint64_t first, uint64_t count) {
  uint64_t fresh = 0;
  for (uint64_t page = first; page < first + count;) {
    std::unique_ptr<Chunk>& chunk = chunks_[page / kChunkPages];
    if (chunk == nullptr) {
      chunk = std::make_unique<Chunk>();
    }
    const uint64_t end = std::min((page / kChunkPages + 1) * kChunkPages, first + count);
    uint32_t fresh_here = 0;
    for (; page < end; ++page) {
      fresh_here += chunk->times[page % kChunkPages]++ == 0 ? 1 : 0;
    }
    chunk->live += fresh_here;
    fresh += fresh_here;
  }
  return fresh;
}

uint64_t PageCounts::Lower(uint64_t first, uint64_t count) {
  uint64_t gone = 0;
  for (uint64_t page = first; page < first + count;) {
    const auto chunk = chunks_.find(page / kChunkPages);
    const uint64_t end = std::min((page / kChunkPages + 1) * kChunkPages, first + count);
    uint32_t gone_here = 0;
    for (; page < end; ++page) {
      gone_here += --chunk->second->times[page % kChunkPages] == 0 ? 1 : 0;
    }
    gone += gone_here;
    chunk->second->live -= gone_here;
    if (chunk->second->live == 0) {
      chunks_.erase(chunk);
    }
  }
  return gone;
}

// The lock is held until the ledger has accepted the charge: no thread may find a page counted that is not charged.
absl::Status PageCounts::Add(uint64_t first, uint64_t count) {
  MutexLock lock(mutex_);
  const uint64_t bytes = Raise(first, count) * kNdkPageBytes;
  absl::Status taken =
      with_parents_ ? ledger_->Take(Resource::kPinnedBytes, bytes) : ledger_->TakeAlone(Resource::kPinnedBytes, bytes);
  if (!taken.ok()) {
    Lower(first, count);
  }
  return taken;
}

void PageCounts::Remove(uint64_t first, uint64_t count) {
  MutexLock lock(mutex_);
  const uint64_t bytes = Lower(first, count) * kNdkPageBytes;
  if (with_parents_) {
    ledger_->Give(Resource::kPinnedBytes, bytes);
  } else {
    ledger_->GiveAlone(Resource::kPinnedBytes, bytes);
  }
}

// --- PinnedFiles, FilePins, PinBook ---

std::shared_ptr<PageCounts> PinnedFiles::Open(const FileKey& file) {
  MutexLock lock(mutex_);
  if (files_.size() >= sweep_at_) {
    std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max(kSweepFrom, 2 * files_.size());
  }
  std::shared_ptr<PageCounts> counts = files_[file].lock();
  if (counts == nullptr) {
    counts = std::make_shared<PageCounts>(ledger_, with_parents_);
    files_[file] = counts;
  }
  return counts;
}

absl::Status FilePins::Add(uint64_t first, uint64_t count) const {
  RNICD_RETURN_IF_ERROR(session_->Add(first, count));
  absl::Status above = tenant_->Add(first, count);
  if (!above.ok()) {
    session_->Remove(first, count);
  }
  return above;
}

void FilePins::Remove(uint64_t first, uint64_t count) const {
  tenant_->Remove(first, count);
  session_->Remove(first, count);
}

std::shared_ptr<const FilePins> PinBook::Open(const FileKey& file) const {
  return std::make_shared<FilePins>(session->Open(file), tenant->Open(file));
}

// --- PinCharge ---

absl::StatusOr<PinCharge> PinCharge::Take(const std::shared_ptr<Ledger>& session, std::vector<PageRun> runs,
                                          uint64_t pages) {
  PinCharge charge;
  RNICD_ASSIGN_OR_RETURN(charge.registered_, Charge::Take(session, Resource::kRegisteredBytes, pages * kNdkPageBytes));
  RNICD_ASSIGN_OR_RETURN(charge.lists_, Charge::Take(session, Resource::kHeapBytes, runs.size() * kHeapOfRun));
  charge.runs_.reserve(runs.size());
  for (PageRun& run : runs) {
    RNICD_RETURN_IF_ERROR(run.file->Add(run.first, run.count));
    charge.runs_.push_back(std::move(run));
  }
  return charge;
}

PinCharge& PinCharge::operator=(PinCharge&& other) noexcept {
  if (this != &other) {
    Refund();
    registered_ = std::move(other.registered_);
    lists_ = std::move(other.lists_);
    runs_ = std::exchange(other.runs_, {});
  }
  return *this;
}

void PinCharge::Refund() {
  for (const PageRun& run : runs_) {
    run.file->Remove(run.first, run.count);
  }
  runs_.clear();
  lists_.Refund();
  registered_.Refund();
}

}  // namespace rnicd::core
