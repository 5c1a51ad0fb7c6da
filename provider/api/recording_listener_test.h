#pragma once

// Listener and helpers for the queue pair tests of every provider.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <ostream>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/waiting_fixture.h"
#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// Short names for the tables of expected outcomes.
inline constexpr OperationType kSent = OperationType::kSend;
inline constexpr OperationType kReceived = OperationType::kReceive;
inline constexpr OperationType kReadOp = OperationType::kRead;
inline constexpr OperationType kWritten = OperationType::kWrite;
inline constexpr OperationType kBound = OperationType::kBind;
inline constexpr OperationType kFast = OperationType::kFastRegister;
inline constexpr OperationType kInvalidated = OperationType::kInvalidate;
inline constexpr NtStatus kOk = NtStatus::kSuccess;
inline constexpr NtStatus kCancelled = NtStatus::kCancelled;

inline constexpr AccessRights kAllRights{
    .local_write = true, .remote_read = true, .remote_write = true, .read_sink = true};
// Timeout of waits in tests. Far above the duration of any step, so reaching it means that the event never comes.
inline constexpr std::chrono::seconds kWaitTimeout{30};

// The fields of a completion that most tests check.
struct Outcome {
  uint64_t context = 0;
  OperationType type = OperationType::kSend;
  NtStatus status = NtStatus::kSuccess;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
using Outcomes = std::vector<Outcome>;

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.context << ":" << static_cast<int>(outcome.type) << ":" << NtStatusName(outcome.status);
}

// Records callbacks, and fails the test on a callback that violates the listener's contract.
class RecordingListener final : public QueuePairListener {
 public:
  void OnCompletion(WorkQueue queue, const Completion& completion) override {
    std::atomic<bool>& inside = queue == WorkQueue::kReceive ? inside_receive_ : inside_initiator_;
    EXPECT_FALSE(inside.exchange(true)) << "two completions of one queue at a time";
    if (on_completion) {
      on_completion(completion);
    }
    {
      MutexLock lock(mutex_);
      EXPECT_FALSE(closed_) << "a completion after Shutdown";
      (queue == WorkQueue::kReceive ? received_ : initiated_).push_back(completion);
      changed_.NotifyAll();
    }
    inside = false;
  }
  void OnPeerDisconnected() override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(closed_) << "OnPeerDisconnected after Shutdown";
    EXPECT_EQ(peer_gone_, 0) << "OnPeerDisconnected twice";
    ++peer_gone_;
    changed_.NotifyAll();
  }

  // Any later callback fails the test.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  std::vector<Completion> completions(WorkQueue queue) const {
    MutexLock lock(mutex_);
    return queue == WorkQueue::kReceive ? received_ : initiated_;
  }
  Outcomes outcomes(WorkQueue queue) const {
    Outcomes outcomes;
    for (const Completion& completion : completions(queue)) {
      outcomes.push_back({completion.request_context, completion.type, completion.status});
    }
    return outcomes;
  }
  int peer_gone() const {
    MutexLock lock(mutex_);
    return peer_gone_;
  }
  // False when fewer than `count` completions arrive before the timeout.
  bool WaitFor(WorkQueue queue, size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kWaitTimeout;
    MutexLock lock(mutex_);
    while ((queue == WorkQueue::kReceive ? received_ : initiated_).size() < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) {
        return false;
      }
    }
    return true;
  }
  // False when no OnPeerDisconnected arrives before the timeout.
  bool WaitForPeerGone() {
    const auto deadline = std::chrono::steady_clock::now() + kWaitTimeout;
    MutexLock lock(mutex_);
    while (peer_gone_ == 0) {
      if (!changed_.WaitUntil(mutex_, deadline)) {
        return false;
      }
    }
    return true;
  }

  // Set before anything can be reported.
  std::function<void(const Completion&)> on_completion;

 private:
  std::atomic<bool> inside_receive_{false};
  std::atomic<bool> inside_initiator_{false};
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Completion> received_ RNICD_GUARDED_BY(mutex_);
  std::vector<Completion> initiated_ RNICD_GUARDED_BY(mutex_);
  int peer_gone_ RNICD_GUARDED_BY(mutex_) = 0;
  bool closed_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
