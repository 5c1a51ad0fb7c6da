#include "client/cpp/session/pending_requests.h"

#include <utility>

namespace rnicd::inline client {

absl::StatusOr<uint64_t> PendingRequests::Add(Completion completion) {
  MutexLock lock(mutex_);
  if (!closed_.ok()) {
    return closed_;
  }
  const uint64_t context = next_context_++;
  completions_.emplace(context, std::move(completion));
  return context;
}

std::optional<PendingRequests::Completion> PendingRequests::Take(uint64_t request_context) {
  MutexLock lock(mutex_);
  auto node = completions_.extract(request_context);
  if (node.empty()) {
    return std::nullopt;
  }
  return std::move(node.mapped());
}

void PendingRequests::Complete(const v1::RequestCompleted& event) {
  if (const std::optional<Completion> completion = Take(event.request_context())) {
    (*completion)(event);
  }
}

void PendingRequests::Close(const absl::Status& why) {
  std::map<uint64_t, Completion> failed;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) {
      return;
    }
    closed_ = why;
    failed.swap(completions_);
  }
  for (const auto& [context, completion] : failed) {
    completion(why);
  }
}

}  // namespace rnicd::inline client
