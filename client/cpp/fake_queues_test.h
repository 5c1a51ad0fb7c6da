#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/cpp/fake_state_test.h"
#include "rnicd/v1/queue_service.pb.h"

namespace rnicd::inline client {

// A flag that no operation takes.
inline constexpr uint32_t kFakeBadFlag = 0x8000;
inline constexpr uint32_t kFakePrivilegedToken = 0x515;

// What the fake's queues hold, and what a test asks of it and does to it.
struct FakeQueues {
  explicit FakeQueues(FakeState& shared) : state(shared) {}

  // The last chain that came.
  v1::PostRequest LastPost() {
    MutexLock lock(state.mutex);
    return last_post;
  }
  // The types it was armed for, in order.
  std::vector<v1::CqNotifyType> Arms() {
    MutexLock lock(state.mutex);
    return arms;
  }
  void Complete(uint64_t completion_queue, const v1::CqResultEx& result) {
    MutexLock lock(state.mutex);
    results[completion_queue].push_back(result);
  }
  // Every poll fails from now on, as when the queue overran.
  void Overrun() { overrun = true; }

  FakeState& state;
  std::atomic<bool> overrun = false;
  v1::PostRequest last_post RNICD_GUARDED_BY(state.mutex);
  std::vector<v1::CqNotifyType> arms RNICD_GUARDED_BY(state.mutex);
  std::map<uint64_t, std::deque<v1::CqResultEx>> results RNICD_GUARDED_BY(state.mutex);
  std::map<uint64_t, v1::CreateQpRequest> created RNICD_GUARDED_BY(state.mutex);
  std::map<uint64_t, v1::QpState> states RNICD_GUARDED_BY(state.mutex);
};

}  // namespace rnicd::inline client
