#include "client/cpp/objects/request_counts.h"

#include <algorithm>
#include <variant>

namespace rnicd::inline client {

OutstandingRequests RequestCounts::In(std::span<const WorkRequest> chain) {
  const auto receives = static_cast<uint32_t>(std::ranges::count_if(chain, [](const WorkRequest& request) {
    return std::holds_alternative<WorkRequest::Receive>(request.operation);
  }));
  return {.initiator = static_cast<uint32_t>(chain.size()) - receives, .receive = receives};
}

void RequestCounts::Add(const OutstandingRequests& chain) {
  initiator_.posted += chain.initiator;
  receive_.posted += chain.receive;
}

void RequestCounts::Remove(const OutstandingRequests& chain) {
  initiator_.posted -= chain.initiator;
  receive_.posted -= chain.receive;
}

// Added first, so that of two threads at the last places at most one finds room.
bool RequestCounts::AddIfRoom(const OutstandingRequests& chain) {
  Add(chain);
  const OutstandingRequests now = outstanding();
  const bool fits = (chain.initiator == 0 || now.initiator <= depth_.initiator) &&
                    (chain.receive == 0 || now.receive <= depth_.receive);
  if (!fits) {
    Remove(chain);
  }
  return fits;
}

// Another thread may have polled a later completion, and reports it first.
void RequestCounts::OnCompletion(const Completion& completion) {
  const bool receive =
      completion.type == OperationType::kReceive || completion.type == OperationType::kReceiveAndInvalidate;
  std::atomic<uint32_t>& over = receive ? receive_.over : initiator_.over;
  uint32_t known = over.load();
  while (static_cast<int32_t>(completion.request_number - known) > 0 &&
         !over.compare_exchange_weak(known, completion.request_number)) {
  }
}

// What is over is read first: it never exceeds what was posted then.
OutstandingRequests RequestCounts::outstanding() const {
  const uint32_t initiator_over = initiator_.over;
  const uint32_t receive_over = receive_.over;
  return {.initiator = initiator_.posted - initiator_over, .receive = receive_.posted - receive_over};
}

void PairsOfQueue::Insert(QueuePairId id, std::shared_ptr<RequestCounts> counts) {
  MutexLock lock(mutex_);
  counts_.emplace(id, std::move(counts));
}

void PairsOfQueue::Remove(QueuePairId id) {
  MutexLock lock(mutex_);
  counts_.erase(id);
}

void PairsOfQueue::OnCompletions(std::span<const Completion> completions) {
  if (completions.empty()) {
    return;
  }
  MutexLock lock(mutex_);
  auto found = counts_.end();
  for (const Completion& completion : completions) {
    if (found == counts_.end() || found->first != completion.queue_pair) {
      found = counts_.find(completion.queue_pair);
    }
    if (found != counts_.end()) {
      found->second->OnCompletion(completion);
    }
  }
}

}  // namespace rnicd::inline client
