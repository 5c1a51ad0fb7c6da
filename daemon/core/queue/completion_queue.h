#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "daemon/core/queue/cq_notifier.h"
#include "daemon/core/queue/cq_store.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/queue_pair.h"

namespace rnicd::core {

// A poll that waits for the first completion. It ends exactly once: with completions, with none when EndWait was
// called, or with the error of its queue.
// Lifetime: shared by its caller and the queue.
// Threads: given to one queue, which guards it.
struct CqWait {
  // Called under no lock, from any thread; must be quick. Returns false when the caller has given up and does not take
  // the completions; the queue then keeps them.
  using Done = std::function<bool(const absl::StatusOr<std::vector<Completion>>&)>;

  // Completions wanted.
  uint32_t max = 0;
  Done done;
  // True once the wait has ended, possibly before the queue got it.
  bool over = false;
};

// An NDK completion queue: completions in order of arrival, and at most one notification for each arming, never two at
// a time. The device queue is only what a provider needs; depth, order, arming and overrun are kept here.
// A mapped queue writes its completions where its client reads them; all else is the same. There a notification is over
// as soon as it is written, so each arming brings one; its event stands for all notifications since the last event was
// fetched, and holds none back.
// Lifetime: holds its adapter open; outlives its queue pairs, each of which is a Hold.
// Threads:  safe.
// Source:   NDK_FN_CREATE_CQ, NDK_FN_ARM_CQ, NDK_FN_GET_CQ_RESULTS, NDK_FN_CQ_NOTIFICATION_CALLBACK.
class CompletionQueue final : public Closable, public EventSource {
 public:
  struct Options {
    uint32_t depth = 0;
    // The consumer's context for notifications.
    uint64_t context = 0;
    std::shared_ptr<Charge> charge;
    Charge entries;
    // Where the completions of a mapped queue go, and the highest depth that these have room for.
    std::unique_ptr<MappedResults> mapped;
    uint32_t mapped_depth_max = 0;
  };
  // `events` outlives the queue. Errors: OBJECT_CLOSING, DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  static absl::StatusOr<std::shared_ptr<CompletionQueue>> Create(std::shared_ptr<Adapter> adapter, Options options,
                                                                 EventQueue& events);

  // Must be called before any thread can arm or fill the queue. `on_overrun` ends the queue pairs; it is called once,
  // under no lock, by the thread that pushed the completion that did not fit. `tickets` are those of a mapped queue.
  void Publish(CompletionQueueId id, std::function<void()> on_overrun, std::array<OwnedTicket, 2> tickets = {});

  // A descriptor of a mapped queue, for its client; each once. Errors: OBJECT_NOT_FOUND of any other queue or
  // descriptor, RINGS_UNAVAILABLE.
  absl::StatusOr<UniqueFd> Duplicate(SharedDescriptor which);
  // Changes the depth; queued completions stay. Errors: CQ_BACKLOG, CQ_OVERRUN, ABOVE_MAPPED_DEPTH, QUOTA_CQ_ENTRIES,
  // those of DeviceCompletionQueue::Resize.
  absl::Status Resize(uint32_t depth);
  void Arm(CqNotifyType type);
  // Removes and returns the oldest completions, at most `max`. Errors: CQ_OVERRUN, CQ_MAPPED.
  absl::StatusOr<std::vector<Completion>> Take(uint32_t max);
  // As Take; but where that returns none, the queue keeps `wait` and returns nothing. The longest wait gets the next
  // completion. Arming is not affected: a wait that takes a completion is a Take that comes right after it. Errors:
  // CQ_OVERRUN, OBJECT_CLOSING, CQ_MAPPED; `wait.done` then is not called.
  absl::StatusOr<std::optional<std::vector<Completion>>> TakeOrWait(const std::shared_ptr<CqWait>& wait);
  // Ends a wait without completions, if it has not ended.
  void EndWait(const std::shared_ptr<CqWait>& wait);
  // Ends all waits with this error.
  void EndWaits(const absl::Status& error);
  // Appends a completion; `solicited` for a receive whose sender requested that its owner is woken. A full queue
  // overruns and is dead from then on.
  void Push(const Completion& completion, bool solicited);

  Taken TakeEvent() override;

  const Adapter& adapter() const { return *adapter_; }
  provider::DeviceCompletionQueue& device() { return *device_; }
  bool overrun() const { return overrun_.load(std::memory_order_relaxed); }
  const std::shared_ptr<Charge>& charge() const { return charge_; }

 private:
  CompletionQueue(Kept<Adapter> adapter, Options options, EventQueue& events);

  // Errors: CQ_OVERRUN, CQ_MAPPED.
  absl::Status CheckTake() const RNICD_REQUIRES(mutex_);
  // The queue is dead: its completions are lost. Returns what ends its queue pairs.
  std::function<void()> Die() RNICD_REQUIRES(mutex_);
  // Sends a notification that is due now. True when it also needs an event, which is then marked as in progress.
  bool BeginNotification() RNICD_REQUIRES(mutex_);
  void PushNotification();
  std::vector<Completion> TakeQueued(uint32_t max) RNICD_REQUIRES(mutex_);
  // A wait that ends, and its completions.
  struct Delivery {
    std::shared_ptr<CqWait> wait;
    std::vector<Completion> results;
  };
  // Takes completions for the longest wait; empty when there are none or no poll waits.
  Delivery NextDelivery() RNICD_REQUIRES(mutex_);
  // Ends the wait with its completions, and continues with the next one while a caller returns its completions.
  void Deliver(Delivery delivery);
  void Finalize() override;
  void ReleaseParents() override { adapter_.Release(); }

  Kept<Adapter> adapter_;
  const uint64_t context_;
  const std::shared_ptr<Charge> charge_;
  EventQueue& events_;
  std::unique_ptr<provider::DeviceCompletionQueue> device_;
  std::atomic<bool> overrun_ = false;

  mutable Mutex mutex_;
  CompletionQueueId id_ RNICD_GUARDED_BY(mutex_);
  std::function<void()> on_overrun_ RNICD_GUARDED_BY(mutex_);
  CqStore store_ RNICD_GUARDED_BY(mutex_);
  CqNotifier notifier_ RNICD_GUARDED_BY(mutex_);
  // Waits in order of arrival. While there are any, no completion is queued.
  std::list<std::shared_ptr<CqWait>> waits_ RNICD_GUARDED_BY(mutex_);
  // The queue is closed: it takes no more waits.
  bool closed_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
