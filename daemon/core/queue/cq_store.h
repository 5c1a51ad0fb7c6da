#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/ndk/completion.h"
#include "base/ntstatus.h"
#include "daemon/core/queue/mapped_results.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// The completions of a queue until they are taken, oldest first, and the limit on their number. They are kept here or,
// for a mapped queue, in the memory that its client reads.
// Threads: one at a time.
class CqStore {
 public:
  // `entries` counts the depth. `mapped` is null for a queue that is not mapped; it has room for `mapped_depth_max`.
  CqStore(uint32_t depth, Charge entries, std::unique_ptr<MappedResults> mapped, uint32_t mapped_depth_max)
      : depth_(depth), entries_(std::move(entries)), mapped_(std::move(mapped)), mapped_depth_max_(mapped_depth_max) {}

  bool is_mapped() const { return mapped_depth_max_ != 0; }
  // Null for a queue that is not mapped, and once it is closed.
  MappedResults* mapped() const { return mapped_.get(); }

  // Completions that were not taken.
  size_t Backlog() const { return mapped_ == nullptr ? results_.size() : mapped_->unread(); }
  bool full() const { return mapped_ == nullptr ? results_.size() >= depth_ : !mapped_->HasRoom(depth_); }
  // True when Take has something to take; never for a mapped queue.
  bool has_results() const { return !results_.empty(); }
  // There must be room.
  void Push(const Completion& completion);
  std::vector<Completion> Take(uint32_t max);
  // Puts completions back to the front.
  void Return(const std::vector<Completion>& results);
  // All completions are lost; the client of a mapped queue reads this.
  void Fail(NtStatus status);
  // Changes the depth by `resize`, which asks the card.
  // Errors: CQ_BACKLOG, ABOVE_MAPPED_DEPTH, QUOTA_CQ_ENTRIES, those of `resize`.
  template <typename OnCard>
  absl::Status Resize(uint32_t depth, const OnCard& resize) {
    RNICD_RETURN_IF_ERROR(PrepareResize(depth));
    absl::Status resized = resize();
    depth_ = resized.ok() ? depth : depth_;
    (void)entries_.Adjust(depth_);  // Refunds: never fails.
    return resized;
  }
  // Refunds the depth, and gives up the mapped memory, which is not to be destroyed under a lock.
  std::unique_ptr<MappedResults> Close();

 private:
  absl::Status PrepareResize(uint32_t depth);

  uint32_t depth_;
  Charge entries_;
  std::unique_ptr<MappedResults> mapped_;
  // 0 of a queue that is not mapped.
  const uint32_t mapped_depth_max_;
  std::deque<Completion> results_;
};

}  // namespace rnicd::core
