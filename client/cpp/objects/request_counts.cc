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

RequestCounts::Queue& RequestCounts::QueueOf(OperationType type) {
  const bool receive = type == OperationType::kReceive || type == OperationType::kReceiveAndInvalidate;
  return receive ? receive_ : initiator_;
}

void RequestCounts::NumberLost(std::span<Completion> last) {
  if (last.empty()) {
    return;
  }
  Queue& queue = QueueOf(last.front().type);
  uint32_t number = queue.posted - static_cast<uint32_t>(last.size());
  for (Completion& request : last) {
    request.request_number = ++number;
  }
  queue.lost += static_cast<uint32_t>(last.size());
}

// Another thread may have polled a later completion, and reports it first. Some were lost: those before them count as
// over a little early.
void RequestCounts::OnCompletion(const Completion& completion) {
  Queue& queue = QueueOf(completion.type);
  uint32_t number = completion.request_number;
  if (const uint32_t lost = queue.lost; lost != 0) {
    const uint32_t posted = queue.posted;
    number = posted - number > lost ? number + lost : posted;
  }
  uint32_t known = queue.over.load();
  while (static_cast<int32_t>(number - known) > 0 && !queue.over.compare_exchange_weak(known, number)) {
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

void PairsOfQueue::AddLost(std::span<const Completion> completions) {
  MutexLock lock(mutex_);
  lost_.insert(lost_.end(), completions.begin(), completions.end());
  has_lost_.store(!lost_.empty(), std::memory_order_release);
}

size_t PairsOfQueue::TakeLost(std::span<Completion> to) {
  if (!has_lost()) {
    return 0;
  }
  MutexLock lock(mutex_);
  const size_t count = std::min(to.size(), lost_.size());
  std::copy_n(lost_.begin(), count, to.begin());
  lost_.erase(lost_.begin(), lost_.begin() + static_cast<ptrdiff_t>(count));
  has_lost_.store(!lost_.empty(), std::memory_order_release);
  return count;
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
