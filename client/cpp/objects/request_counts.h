#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "client/cpp/queue_pair.h"

namespace rnicd::inline client {

// Requests of the two queues of a queue pair that were posted, and how many of them are over.
// Threads: safe.
class RequestCounts {
 public:
  explicit RequestCounts(const OutstandingRequests& depth) : depth_(depth) {}

  static OutstandingRequests In(std::span<const WorkRequest> chain);
  // Counts requests before they are posted. False, and counts none, if one of the queues has no room for them.
  bool AddIfRoom(const OutstandingRequests& chain);
  void Add(const OutstandingRequests& chain);
  // Takes back those that were refused.
  void Remove(const OutstandingRequests& chain);
  void OnCompletion(const Completion& completion);
  // Numbers requests that were posted last, all of one queue, and never reached the daemon: it numbers later ones as if
  // these had never been.
  void NumberLost(std::span<Completion> last);
  OutstandingRequests outstanding() const;

 private:
  struct Queue {
    std::atomic<uint32_t> posted = 0;
    // Number of the last request whose completion was polled.
    std::atomic<uint32_t> over = 0;
    // How many the daemon never got.
    std::atomic<uint32_t> lost = 0;
  };

  Queue& QueueOf(OperationType type);

  const OutstandingRequests depth_;
  Queue initiator_;
  Queue receive_;
};

// The queue pairs that report to a completion queue.
// Threads: safe.
class PairsOfQueue {
 public:
  void Insert(QueuePairId id, std::shared_ptr<RequestCounts> counts);
  void Remove(QueuePairId id);
  // Counts completions that were polled.
  void OnCompletions(std::span<const Completion> completions);

  // Completions that come after those of the daemon.
  void AddLost(std::span<const Completion> completions);
  bool has_lost() const { return has_lost_.load(std::memory_order_acquire); }
  // Moves the oldest to the front of `to`, and returns how many.
  size_t TakeLost(std::span<Completion> to);

 private:
  std::atomic<bool> has_lost_ = false;
  Mutex mutex_;
  std::deque<Completion> lost_ RNICD_GUARDED_BY(mutex_);
  std::map<QueuePairId, std::shared_ptr<RequestCounts>> counts_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
