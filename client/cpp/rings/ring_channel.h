#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "client/cpp/rings/adaptive_spin.h"
#include "client/cpp/rings/shared_mapping.h"
#include "ring/client_end.h"

namespace rnicd::inline client {

// A request for the daemon, without its places in the ring.
struct RingRequest {
  // Operation and arguments.
  ring::Submission entry;
  // Bytes that `entry` has in the payload area; a multiple of ring::kPayloadUnit.
  size_t payload_bytes = 0;
  // Tokens that the daemon may issue. They are read from the result area for the requests that were posted.
  uint32_t tokens = 0;
};

struct RingReply {
  ring::Outcome outcome;
  // Name of the field at fault, after a refusal.
  std::string field;
  // One for each request that was posted, 0 where none was issued; empty for a request without tokens.
  std::vector<uint32_t> tokens;
};

// A ring of the session, shared by the threads of this process. Each thread submits by itself and waits for its own
// outcome; one of those that wait reads the outcomes of all.
// Lifetime: outlives its users; must not be destroyed while a request runs.
// Threads:  safe.
class RingChannel {
 public:
  struct Options {
    // Timeout of one request.
    std::chrono::milliseconds deadline;
    // The longest time of busy polling in one wait.
    std::chrono::nanoseconds spin_max;
    // Called without a lock by a thread that has slept for long: the session may have ended.
    std::function<void()> look_for_end = [] {};
  };
  // `doorbell` is the eventfd on which the daemon waits. Errors: FIELD_OUT_OF_RANGE for a file that is not a ring of
  // this version.
  static absl::StatusOr<std::unique_ptr<RingChannel>> Open(SharedMapping mapping, UniqueFd doorbell,
                                                           const Options& options);

  // Bytes that a request occupies in the payload area, and those that the area has.
  static size_t BytesOf(const RingRequest& request);
  size_t max_payload() const { return end_.max_payload(); }

  // Executes a request. A refusal by the daemon is an outcome with its reason. `encode` writes the payload. Nothing if
  // the request was not submitted and never will be: it is too large for this ring, the ring has ended, or this is a
  // child made by fork. Errors: the cause of the end for a request that was under way then; kDeadlineExceeded, a
  // transport failure: its outcome is unknown.
  std::optional<absl::StatusOr<RingReply>> Execute(const RingRequest& request,
                                                   absl::FunctionRef<void(std::byte*)> encode);

  // Submits a request without an outcome (ring::kFlagNoOutcome), once there is room. False if it was not submitted and
  // never will be, as with Execute. Errors: kDeadlineExceeded, a transport failure: there was no room; it was not
  // submitted.
  absl::StatusOr<bool> Send(const RingRequest& request, absl::FunctionRef<void(std::byte*)> encode);
  // Waits until the daemon has executed what was sent before. Errors: the cause of the ring's end, which may have
  // overtaken it; kDeadlineExceeded.
  absl::Status AwaitSent(std::chrono::milliseconds wait_max);
  // After the ring's end, while the session goes on: the work requests of posts that were sent and that the daemon
  // never takes, as completions that were flushed, without numbers. Once: nothing is awaited any more.
  std::vector<Completion> TakeLost();

  // Fails what is under way; nothing more is submitted. `why` must not be ok. The first call wins.
  void End(const absl::Status& why);
  // Ok, or why the ring has ended.
  absl::Status ended() const;
  // The processor that serves the ring, plus 1; 0 if unknown.
  uint32_t daemon_cpu() const;

 private:
  // A thread in Execute.
  struct Waiter {
    const RingRequest& request;
    uint32_t offset = 0;
    bool submitted = false;
    bool done = false;
    absl::Status failure;
    RingReply reply;
    ConditionVariable changed;
  };

  RingChannel(SharedMapping mapping, ring::ClientEnd end, UniqueFd doorbell, const Options& options);

  // The deadline of a request that begins now.
  Instant Deadline() const { return Instant::clock::now() + options_.deadline; }
  std::optional<absl::StatusOr<RingReply>> Execute(const RingRequest& request,
                                                   absl::FunctionRef<void(std::byte*)> encode, Instant deadline);
  absl::StatusOr<RingReply> WaitForOutcome(Waiter& self, uint32_t number, Instant deadline) RNICD_REQUIRES(mutex_);
  // Room for the request, if there is any now.
  std::optional<uint32_t> Reserve(const RingRequest& request) RNICD_REQUIRES(mutex_);
  // False on timeout.
  bool WaitForRoom(Waiter& self, Instant deadline, uint32_t* offset) RNICD_REQUIRES(mutex_);
  // Where no outcome will wake the threads that wait for room, submits a Nop whose outcome does.
  void RequestRoom() RNICD_REQUIRES(mutex_);
  // Writes payload and entry, and returns the request's number.
  uint32_t Submit(const RingRequest& request, uint32_t offset, absl::FunctionRef<void(std::byte*)> encode)
      RNICD_REQUIRES(mutex_);
  // Waits until something may have changed for this thread: it reads outcomes, or another thread does.
  void AwaitProgress(Waiter& self, Instant deadline) RNICD_REQUIRES(mutex_);
  // `for_room`: also returns once there may be more room.
  void SleepUntilOutcome(bool for_room, Instant deadline) RNICD_REQUIRES(mutex_);
  // Reads all outcomes, and whether the ring has ended.
  void ReadOutcomes() RNICD_REQUIRES(mutex_);
  void Deliver(const ring::Outcome& outcome) RNICD_REQUIRES(mutex_);
  void EndLocked(const absl::Status& why) RNICD_REQUIRES(mutex_);
  // Lets another thread read outcomes, if some wait and none does.
  void AppointReader() RNICD_REQUIRES(mutex_);
  // If the last request that was submitted needs it.
  void RingDoorbell() RNICD_REQUIRES(mutex_);

  const SharedMapping mapping_;
  const UniqueFd doorbell_;
  const Options options_;
  AdaptiveSpin spin_;

  mutable Mutex mutex_;
  // Changed, HasTakenMore, Sleep and daemon_cpu are called without the lock.
  ring::ClientEnd end_;
  absl::Status ended_ RNICD_GUARDED_BY(mutex_);
  // True while a thread polls or sleeps on the ring.
  bool reading_ RNICD_GUARDED_BY(mutex_) = false;
  // Requests without an outcome, by number; null where no thread waits any more, after a timeout.
  std::vector<Waiter*> outstanding_ RNICD_GUARDED_BY(mutex_);
  // Threads that wait for the reading thread.
  std::vector<Waiter*> idle_ RNICD_GUARDED_BY(mutex_);
  bool doorbell_wanted_ RNICD_GUARDED_BY(mutex_) = false;
  // The processor that was last published to the daemon.
  uint32_t cpu_ RNICD_GUARDED_BY(mutex_) = 0;
  // Requests sent without an outcome, and how many of them are known to be executed.
  uint64_t sent_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t executed_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd::inline client
