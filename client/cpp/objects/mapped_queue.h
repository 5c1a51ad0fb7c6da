#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "client/cpp/rings/adaptive_spin.h"
#include "client/cpp/rings/queue_pipe.h"
#include "client/cpp/rings/shared_mapping.h"
#include "ring/queue_end.h"

namespace rnicd::inline client {

// A completion queue whose completions the daemon writes into memory of this process.
// Threads:  safe.
// Errors:   CQ_OVERRUN or DEVICE_FAILED when the queue has failed; the cause when the session has ended; a transport
//           failure in a child made by fork, which does not have the memory.
class MappedQueue {
 public:
  struct Options {
    // The longest time of busy polling in one wait.
    std::chrono::nanoseconds spin_max;
    // Returns the processor that fills the queue, plus 1; 0 if unknown.
    std::function<uint32_t()> daemon_cpu;
    // Fetches the queue's pipe; called once at most.
    std::function<absl::StatusOr<QueuePipe>()> fetch_pipe;
    // Called without a lock by a thread that finds nothing for long: the session or the ring may have ended. True if
    // there are completions elsewhere than in the memory: waits end then, as with a completion or a notification.
    std::function<bool()> look_for_end = [] { return false; };
  };
  // Errors: FIELD_OUT_OF_RANGE for a file that is not a mapped queue of this version.
  static absl::StatusOr<std::shared_ptr<MappedQueue>> Open(SharedMapping mapping, Options options);

  // Moves the oldest completions to the front of `to`. Returns how many.
  absl::StatusOr<size_t> Poll(std::span<Completion> to);
  // As Poll, but waits for the first completion until the deadline. 0 before that: see look_for_end.
  absl::StatusOr<size_t> PollUntil(std::span<Completion> to, Instant deadline);
  // Waits for a notification newer than the last one waited for. False when the deadline passed.
  absl::StatusOr<bool> WaitForNotification(Instant deadline);

  // For an event loop: see CompletionQueue.
  absl::StatusOr<int> Descriptor();
  absl::StatusOr<bool> PrepareToWait();
  void StopWaiting();

  // The session has ended: waits fail, and so do polls that find nothing. `why` must not be ok. The first call wins.
  void End(const absl::Status& why);

 private:
  MappedQueue(SharedMapping mapping, const ring::QueueReader& reader, Options options);

  // Ok while the queue may be used.
  absl::Status CheckProcess() const;
  // The reason for which no completion or notification will follow; ok while one may follow. Waits briefly, at most
  // until `deadline`, for a cause that has not arrived yet.
  absl::Status Failure(Instant deadline) RNICD_REQUIRES(mutex_);
  absl::StatusOr<size_t> PollLocked(std::span<Completion> to, Instant deadline) RNICD_REQUIRES(mutex_);
  // Returns when there is a completion, the queue has failed, or the session or the time may be over. True if there are
  // completions elsewhere.
  bool AwaitCompletion(Instant deadline) RNICD_REQUIRES(mutex_);
  void SleepUntilCompletion(std::chrono::nanoseconds time) RNICD_REQUIRES(mutex_);
  // Where nothing waits, completions wake nothing.
  void ClearWakeup() RNICD_REQUIRES(mutex_);

  bool LookForEnd() RNICD_REQUIRES(mutex_);

  const SharedMapping mapping_;
  const Options options_;
  AdaptiveSpin spin_;

  Mutex mutex_;
  // Changed, Sleep, notifications, status and WaitForNotification are called without the lock.
  ring::QueueReader reader_;
  absl::Status ended_ RNICD_GUARDED_BY(mutex_);
  // Polls in a row that found nothing.
  uint32_t empty_polls_ RNICD_GUARDED_BY(mutex_) = 0;
  // Threads that sleep until a completion.
  uint32_t sleepers_ RNICD_GUARDED_BY(mutex_) = 0;
  // From the first Descriptor on, threads sleep on the pipe too: there is one word for the kind of wake-up. A byte in
  // it wakes all, so it is only read while no thread sleeps.
  std::optional<QueuePipe> pipe_ RNICD_GUARDED_BY(mutex_);
  // An event loop waits on the pipe.
  bool loop_waits_ RNICD_GUARDED_BY(mutex_) = false;
  // Notifications already reported to threads.
  uint32_t notified_ RNICD_GUARDED_BY(mutex_) = 0;
  // True while a thread sleeps until a notification; others wait for that thread.
  bool watched_ RNICD_GUARDED_BY(mutex_) = false;
  ConditionVariable watch_over_;
  ConditionVariable session_ended_;
};

}  // namespace rnicd::inline client
