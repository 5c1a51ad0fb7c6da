#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/core/adapter.h"
#include "daemon/core/closable.h"
#include "daemon/core/event_queue.h"
#include "daemon/core/ledger.h"
#include "provider/api/queue_pair.h"

namespace rnicd::core {

// What a notification is wanted for. The numbers are NDK's.
enum class CqNotifyType : uint8_t { kErrors = 0, kAny = 1, kSolicited = 2 };

// The effect of arming a queue that is armed: ANY wins over everything, SOLICITED over ERRORS.
CqNotifyType CombineArms(CqNotifyType first, CqNotifyType second);

// One completion as its owner sees it.
struct CqResult {
  provider::Completion completion;
  uint64_t qp_context = 0;
};

// An NDK completion queue: completions in the order they came, and at most one notification for each arming, never two
// at a time. The card's own queue is only what a provider needs; depth, order, arming and overrun are kept here.
// Lifetime: holds its adapter open; outlives its queue pairs, each of which is a Hold.
// Threads:  safe.
// Source:   NDK_FN_CREATE_CQ, NDK_FN_ARM_CQ, NDK_FN_GET_CQ_RESULTS, NDK_FN_CQ_NOTIFICATION_CALLBACK.
class CompletionQueue final : public Closable, public EventSource {
 public:
  struct Options {
    uint32_t depth = 0;
    // The consumer's, for notifications.
    uint64_t context = 0;
    std::shared_ptr<Charge> charge;
    Charge entries;
  };
  // `events` outlives the queue. Errors: OBJECT_CLOSING, DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  static absl::StatusOr<std::shared_ptr<CompletionQueue>> Create(std::shared_ptr<Adapter> adapter, Options options,
                                                                 EventQueue& events);

  // Before anyone can arm or fill the queue. `on_overrun` ends its queue pairs; it is called once, under no lock, by
  // whichever thread brought the completion too many.
  void Publish(CompletionQueueId id, std::function<void()> on_overrun);

  // Keeps what is queued. Errors: CQ_BACKLOG, CQ_OVERRUN, QUOTA_CQ_ENTRIES, those of DeviceCompletionQueue::Resize.
  absl::Status Resize(uint32_t depth);
  void Arm(CqNotifyType type);
  // At most `max` of the oldest. Errors: CQ_OVERRUN.
  absl::StatusOr<std::vector<CqResult>> Take(uint32_t max);
  // One more completion; on a full queue the end of it.
  void Push(const CqResult& result);

  Taken TakeEvent() override;

  const Adapter& adapter() const { return *adapter_; }
  provider::DeviceCompletionQueue& device() { return *device_; }
  bool overrun() const { return overrun_.load(std::memory_order_relaxed); }
  const std::shared_ptr<Charge>& charge() const { return charge_; }

 private:
  CompletionQueue(std::shared_ptr<Adapter> adapter, Hold adapter_hold, Options options, EventQueue& events);

  // Whether a notification is due now; notes that it is under way.
  bool BeginNotification() RNICD_REQUIRES(mutex_);
  void PushNotification();
  void Finalize() override;
  void LetGo() override { adapter_hold_.Release(); }

  const std::shared_ptr<Adapter> adapter_;
  Hold adapter_hold_;
  const uint64_t context_;
  const std::shared_ptr<Charge> charge_;
  EventQueue& events_;
  std::unique_ptr<provider::DeviceCompletionQueue> device_;
  std::atomic<bool> overrun_ = false;

  Mutex mutex_;
  CompletionQueueId id_ RNICD_GUARDED_BY(mutex_);
  std::function<void()> on_overrun_ RNICD_GUARDED_BY(mutex_);
  uint32_t depth_ RNICD_GUARDED_BY(mutex_);
  Charge entries_ RNICD_GUARDED_BY(mutex_);
  std::deque<CqResult> results_ RNICD_GUARDED_BY(mutex_);
  // Completions are numbered from 1 as they come; these are the numbers of the last that was taken, of the last that
  // satisfies SOLICITED, and of the last there was when the last notification was sent.
  uint64_t pushed_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t last_waking_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t notified_ RNICD_GUARDED_BY(mutex_) = 0;
  std::optional<CqNotifyType> armed_ RNICD_GUARDED_BY(mutex_);
  // A notification was sent and not fetched yet: NDK's callback has not returned.
  bool notifying_ RNICD_GUARDED_BY(mutex_) = false;
  // The overrun was reported, or the queue is closed: nothing is said any more.
  bool silent_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
