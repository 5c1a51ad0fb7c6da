// Many threads on one queue pair. NDK asks consumers for one call at a time on a queue; a daemon cannot trust in that.
// Whatever the threads do: a request that was posted completes exactly once, one that was refused never does.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kQueueDepth = 256;
constexpr uint64_t kThreads = 8;
constexpr uint64_t kPosts = 1000;

// A write of no bytes is executed whatever its token is.
v1::WorkRequest Tick(uint64_t context) { return WriteRequest({}, 0, 0, 0, context); }

// Posts as many requests, one per call, with distinct contexts from 1 on, and returns those that were accepted, in
// order. The only reason to refuse one is that the queue is full.
std::vector<uint64_t> PostFromManyThreads(TestQueue& queue) {
  Mutex mutex;
  std::vector<uint64_t> accepted;
  std::vector<std::jthread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t context = thread + 1; context <= kPosts; context += kThreads) {
        const auto posted = queue.Post({Tick(context)});
        ExpectOk(posted);
        if (posted.response.posted() == 0) {
          EXPECT_EQ(posted.response.failure().reason(), v1::ERROR_REASON_QUEUE_FULL);
        } else {
          MutexLock lock(mutex);
          accepted.push_back(context);
        }
      }
    });
  }
  threads.clear();
  std::ranges::sort(accepted);
  return accepted;
}

class QueueConcurrency : public DaemonTest {};

TEST_F(QueueConcurrency, EveryAcceptedPostCompletesOnce) {
  ConnectedPair pair(daemon(), {.cq_depth = 4096, .initiator_queue_depth = kQueueDepth});
  const std::vector<uint64_t> accepted = PostFromManyThreads(pair.near);
  EXPECT_GE(accepted.size(), kQueueDepth);
  std::vector<uint64_t> completed;
  while (completed.size() < accepted.size() && !HasFailure()) {
    const v1::CqResultEx completion = pair.near.NextInitiator();
    EXPECT_EQ(completion.result().ntstatus(), kStatusSuccess);
    completed.push_back(completion.result().request_context());
  }
  EXPECT_TRUE(pair.near.DrainInitiator().empty()) << "there are more completions than accepted requests";
  std::ranges::sort(completed);
  EXPECT_TRUE(completed == accepted) << "a request completed twice or not at all";
  pair.near.MustRun(Tick(kPosts + 1));
}

}  // namespace
}  // namespace rnicd::test
