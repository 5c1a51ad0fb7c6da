#include "daemon/core/tenant/pinned_pages.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {

namespace {

// Calls `operation` for each group of neighbouring runs that are of the same file, as long as it answers true.
template <typename Operation>
void ForEachFile(std::span<const PageRun> runs, const Operation& operation) {
  while (!runs.empty()) {
    const auto end =
        std::find_if(runs.begin(), runs.end(), [&](const PageRun& run) { return run.file != runs[0].file; });
    const auto length = static_cast<size_t>(end - runs.begin());
    if (!operation(*runs[0].file, runs.first(length))) {
      return;
    }
    runs = runs.subspan(length);
  }
}

}  // namespace

// --- PageCounts ---

uint64_t PageCounts::Lower(std::span<const PageRun> runs) {
  uint64_t pages = 0;
  for (const PageRun& run : runs) {
    pages += pages_.Lower(run.first, run.count);
  }
  return pages * kNdkPageBytes;
}

// The lock is held until the ledger has accepted the charge: no thread may find a page counted that is not charged.
absl::Status PageCounts::Add(std::span<const PageRun> runs) {
  MutexLock lock(mutex_);
  uint64_t pages = 0;
  for (const PageRun& run : runs) {
    pages += pages_.Raise(run.first, run.count);
  }
  const uint64_t bytes = pages * kNdkPageBytes;
  absl::Status taken =
      with_parents_ ? ledger_->Take(Resource::kPinnedBytes, bytes) : ledger_->TakeAlone(Resource::kPinnedBytes, bytes);
  if (!taken.ok()) {
    Lower(runs);
  }
  return taken;
}

void PageCounts::Remove(std::span<const PageRun> runs) {
  MutexLock lock(mutex_);
  const uint64_t bytes = Lower(runs);
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

absl::Status FilePins::Add(std::span<const PageRun> runs) const {
  RNICD_RETURN_IF_ERROR(session_->Add(runs));
  absl::Status above = tenant_->Add(runs);
  if (!above.ok()) {
    session_->Remove(runs);
  }
  return above;
}

void FilePins::Remove(std::span<const PageRun> runs) const {
  tenant_->Remove(runs);
  session_->Remove(runs);
}

std::shared_ptr<const FilePins> PinBook::Open(const FileKey& file) const {
  return std::make_shared<FilePins>(session->Open(file), tenant->Open(file));
}

// --- PinCharge ---

absl::StatusOr<PinCharge> PinCharge::Take(const std::shared_ptr<Ledger>& session, std::vector<PageRun> runs,
                                          uint64_t pages) {
  RNICD_ASSIGN_OR_RETURN(auto charges, Charge::TakeAll(session, {{Resource::kRegisteredBytes, pages * kNdkPageBytes},
                                                                 {Resource::kHeapBytes, runs.size() * kHeapOfRun}}));
  return Take(std::move(charges[0]), std::move(charges[1]), std::move(runs));
}

absl::StatusOr<PinCharge> PinCharge::Take(Charge registered, Charge lists, std::vector<PageRun> runs) {
  PinCharge charge;
  charge.registered_ = std::move(registered);
  charge.lists_ = std::move(lists);
  absl::Status counted;
  size_t done = 0;
  ForEachFile(runs, [&](const FilePins& file, std::span<const PageRun> group) {
    counted = file.Add(group);
    done += counted.ok() ? group.size() : 0;
    return counted.ok();
  });
  runs.erase(runs.begin() + static_cast<ptrdiff_t>(done), runs.end());
  charge.runs_ = std::move(runs);
  RNICD_RETURN_IF_ERROR(counted);
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
  ForEachFile(runs_, [](const FilePins& file, std::span<const PageRun> group) {
    file.Remove(group);
    return true;
  });
  runs_.clear();
  lists_.Refund();
  registered_.Refund();
}

}  // namespace rnicd::core
