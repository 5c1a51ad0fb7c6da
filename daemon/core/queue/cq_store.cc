#include "daemon/core/queue/cq_store.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

void CqStore::Push(const Completion& completion) {
  if (mapped_ != nullptr) {
    mapped_->Push(completion);
  } else {
    results_.push_back(completion);
  }
}

std::vector<Completion> CqStore::Take(uint32_t max) {
  const auto end = results_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(max, results_.size()));
  std::vector<Completion> results(results_.begin(), end);
  results_.erase(results_.begin(), end);
  return results;
}

void CqStore::Return(const std::vector<Completion>& results) {
  results_.insert(results_.begin(), results.begin(), results.end());
}

void CqStore::Fail(NtStatus status) {
  results_.clear();
  if (mapped_ != nullptr) {
    mapped_->Fail(status);
  }
}

absl::Status CqStore::PrepareResize(uint32_t depth) {
  if (is_mapped() && depth > mapped_depth_max_) {
    return MakeError(ErrorReason::ABOVE_MAPPED_DEPTH, "cq_depth");
  }
  if (Backlog() > depth) {
    return MakeError(ErrorReason::CQ_BACKLOG, "cq_depth");
  }
  return depth > depth_ ? entries_.Adjust(depth) : absl::OkStatus();
}

std::unique_ptr<MappedResults> CqStore::Close() {
  results_.clear();
  entries_.Refund();
  return std::move(mapped_);
}

}  // namespace rnicd::core
