// Many threads on one queue pair. NDK asks consumers for one call at a time on a queue; a daemon cannot trust in that.
// Whatever the threads do: a request that was posted completes exactly once, one that was refused never does.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/event_reader.h"
#include "tests/support/held_card.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kCqDepth = 4096;
constexpr uint64_t kThreads = 8;
constexpr uint64_t kPosts = 1000;
constexpr uint32_t kCancelled = static_cast<uint32_t>(NtStatus::kCancelled);

// A write of no bytes is executed whatever its token is.
v1::WorkRequest Tick(uint64_t context) { return WriteRequest({}, 0, 0, 0, context); }

// Results of posts from several threads.
struct Tally {
  std::vector<uint64_t> accepted;
  // Refused requests by reason, including calls refused as a whole.
  std::map<v1::ErrorReason, uint64_t> refused;

  uint64_t all() const {
    uint64_t count = accepted.size();
    for (const auto& [reason, times] : refused) {
      count += times;
    }
    return count;
  }
};

// Posts `posts` requests, one per call, with distinct contexts from 1 on.
Tally PostFromManyThreads(TestQueue& queue, uint64_t posts, const std::function<v1::WorkRequest(uint64_t)>& request,
                          std::atomic<uint64_t>* progress = nullptr) {
  std::vector<Tally> tallies(kThreads);
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (uint64_t context = thread + 1; context <= posts; context += kThreads) {
          const auto posted = queue.Post({request(context)});
          if (posted.ok() && posted.response.posted() == 1) {
            tallies[thread].accepted.push_back(context);
          } else {
            ++tallies[thread].refused[posted.ok() ? posted.response.failure().reason() : posted.detail.reason()];
          }
          if (progress != nullptr) {
            progress->fetch_add(1);
          }
        }
      });
    }
  }
  Tally sum;
  for (const Tally& tally : tallies) {
    sum.accepted.insert(sum.accepted.end(), tally.accepted.begin(), tally.accepted.end());
    for (const auto& [reason, times] : tally.refused) {
      sum.refused[reason] += times;
    }
  }
  std::ranges::sort(sum.accepted);
  EXPECT_EQ(sum.all(), posts);
  return sum;
}

// Fetches a completion for each accepted request; expects each exactly once, and no more.
void ExpectEachCompletesOnce(const Tally& tally, const std::function<v1::CqResultEx()>& next,
                             const std::function<std::vector<v1::CqResultEx>()>& drain,
                             const std::vector<uint32_t>& statuses) {
  std::vector<uint64_t> completed;
  for (size_t count = 0; count < tally.accepted.size() && !testing::Test::HasFailure(); ++count) {
    const v1::CqResultEx completion = next();
    completed.push_back(completion.result().request_context());
    EXPECT_NE(std::ranges::count(statuses, completion.result().ntstatus()), 0) << completion.ShortDebugString();
  }
  EXPECT_TRUE(drain().empty()) << "there are more completions than accepted requests";
  std::ranges::sort(completed);
  EXPECT_TRUE(completed == tally.accepted) << "a request completed twice or not at all";
}

class QueueConcurrency : public DaemonTest {
 protected:
  static constexpr uint32_t kQueueDepth = 256;

  static QueueOptions Options() {
    return {.cq_depth = kCqDepth, .receive_queue_depth = kQueueDepth, .initiator_queue_depth = kQueueDepth};
  }
};

TEST_F(QueueConcurrency, EveryAcceptedPostCompletesOnce) {
  ConnectedPair pair(daemon(), Options());
  const Tally tally = PostFromManyThreads(pair.near, kPosts, Tick);
  // A full queue is the only allowed reason.
  EXPECT_LE(tally.refused.size(), 1u);
  EXPECT_EQ(tally.refused.contains(v1::ERROR_REASON_QUEUE_FULL), !tally.refused.empty());
  EXPECT_FALSE(tally.accepted.empty());
  ExpectEachCompletesOnce(
      tally, [&] { return pair.near.NextInitiator(); }, [&] { return pair.near.DrainInitiator(); }, {kStatusSuccess});
  pair.near.MustRun(Tick(kPosts + 1));
}

// Nothing is executed meanwhile, so the queue accepts exactly its depth, whichever thread comes first.
TEST_F(QueueConcurrency, FullQueueTakesExactlyItsDepth) {
  ConnectedPair pair(daemon(), Options());
  pair.near.MustPost({SendRequest({}, v1::OP_FLAG_SILENT_SUCCESS)});
  const Tally tally = PostFromManyThreads(pair.near, kPosts, Tick);
  EXPECT_EQ(tally.accepted.size(), kQueueDepth - 1) << "the Send that waits takes a place too";
  const std::map<v1::ErrorReason, uint64_t> refused = {{v1::ERROR_REASON_QUEUE_FULL, kPosts - kQueueDepth + 1}};
  EXPECT_TRUE(tally.refused == refused);
  pair.near.ExpectPostRefused(Tick(0), ErrorReason::QUEUE_FULL, "");
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  pair.far.MustPost({ReceiveRequest({})});
  ExpectEachCompletesOnce(
      tally, [&] { return pair.near.NextInitiator(); }, [&] { return pair.near.DrainInitiator(); }, {kStatusSuccess});
}

TEST_F(QueueConcurrency, ReceivesFromManyThreadsAreFlushedOnceEach) {
  ConnectedPair pair(daemon(), Options());
  const Tally tally =
      PostFromManyThreads(pair.near, kPosts, [](uint64_t context) { return ReceiveRequest({}, context); });
  EXPECT_EQ(tally.accepted.size(), kQueueDepth);
  EXPECT_TRUE(pair.near.DrainReceive().empty());
  ExpectOk(CloseQp(pair.near_session, pair.near.qp_id()));
  ExpectEachCompletesOnce(
      tally, [&] { return pair.near.NextReceive(); }, [&] { return pair.near.DrainReceive(); }, {kCancelled});
}

// A flush in the middle of it: what was accepted before it is executed or cancelled, what comes after it is refused.
TEST_F(QueueConcurrency, FlushDuringPostsLosesNothing) {
  ConnectedPair pair(daemon(), Options());
  std::atomic<uint64_t> progress = 0;
  std::jthread flusher([&] {
    EXPECT_TRUE(Eventually([&] { return progress.load() >= kPosts / 4; }));
    v1::FlushRequest flush;
    flush.set_qp_id(pair.near.qp_id());
    ExpectOk(pair.near_session.Call(&QueueStub::Flush, flush));
  });
  const Tally tally = PostFromManyThreads(pair.near, kPosts, Tick, &progress);
  flusher.join();
  for (const auto& [reason, times] : tally.refused) {
    EXPECT_TRUE(reason == v1::ERROR_REASON_QP_NOT_CONNECTED || reason == v1::ERROR_REASON_QUEUE_FULL)
        << v1::ErrorReason_Name(reason);
  }
  ExpectEachCompletesOnce(
      tally, [&] { return pair.near.NextInitiator(); }, [&] { return pair.near.DrainInitiator(); },
      {kStatusSuccess, kCancelled});
  pair.near.ExpectPostRefused(Tick(0), ErrorReason::QP_NOT_CONNECTED, "");
}

// A close in the middle of it: the completions of what was accepted can still be taken.
TEST_F(QueueConcurrency, CloseDuringPostsLosesNothing) {
  ConnectedPair pair(daemon(), Options());
  std::atomic<uint64_t> progress = 0;
  std::jthread closer([&] {
    EXPECT_TRUE(Eventually([&] { return progress.load() >= kPosts / 4; }));
    ExpectOk(CloseQp(pair.near_session, pair.near.qp_id()));
  });
  const Tally tally = PostFromManyThreads(pair.near, kPosts, Tick, &progress);
  closer.join();
  for (const auto& [reason, times] : tally.refused) {
    EXPECT_TRUE(reason == v1::ERROR_REASON_OBJECT_NOT_FOUND || reason == v1::ERROR_REASON_OBJECT_CLOSING ||
                reason == v1::ERROR_REASON_QP_NOT_CONNECTED || reason == v1::ERROR_REASON_QUEUE_FULL)
        << v1::ErrorReason_Name(reason);
  }
  ExpectEachCompletesOnce(
      tally, [&] { return pair.near.NextInitiator(); }, [&] { return pair.near.DrainInitiator(); },
      {kStatusSuccess, kCancelled});
  EXPECT_FALSE(pair.near.Post({Tick(0)}).ok());
}

// Two sides of one connection access each other at the same time, each from several threads.
TEST_F(QueueConcurrency, BothSidesAtOnce) {
  ConnectedPair pair(daemon(), Options());
  Tally near;
  Tally far;
  {
    std::jthread other([&] { far = PostFromManyThreads(pair.far, kPosts, Tick); });
    near = PostFromManyThreads(pair.near, kPosts, Tick);
  }
  ExpectEachCompletesOnce(
      near, [&] { return pair.near.NextInitiator(); }, [&] { return pair.near.DrainInitiator(); }, {kStatusSuccess});
  ExpectEachCompletesOnce(
      far, [&] { return pair.far.NextInitiator(); }, [&] { return pair.far.DrainInitiator(); }, {kStatusSuccess});
}

class ReadsUnderWay : public DaemonTest {
 protected:
  ReadsUnderWay() : DaemonTest(HoldableReadsFlags()) {}
};

// NDK: a close completes when everything under way is over. Until then, and after, nothing more is taken.
TEST_F(ReadsUnderWay, QueuePairThatIsBeingClosedTakesNoPosts) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  TestMemory source(pair.far_session, kPage);
  TestMemory sink(pair.near_session, kPage);
  const v1::Registration from =
      pair.far_session.RegisterWhole(pair.far_session.CreateMr(), source.id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_READ);
  const v1::Registration to =
      pair.near_session.RegisterWhole(pair.near_session.CreateMr(), sink.id(), kPage, v1::MR_FLAG_ALLOW_LOCAL_WRITE);
  HeldReads held;
  pair.near.MustPost({ReadRequest({Sge(kBase, kPage, to.local_token())}, kBase, from.remote_token(), 0, 1)});
  const auto closing = CloseQp(pair.near_session, pair.near.qp_id(), true, 9);
  ExpectOk(closing);
  for (int count = 0; count < 10; ++count) {
    const auto refused = pair.near.Post({Tick(2), ReceiveRequest({}, 3)});
    const v1::ErrorDetail& why = refused.ok() ? refused.response.failure() : refused.detail;
    EXPECT_EQ(refused.response.posted(), 0u);
    EXPECT_TRUE(why.reason() == v1::ERROR_REASON_OBJECT_NOT_FOUND || why.reason() == v1::ERROR_REASON_OBJECT_CLOSING)
        << why.ShortDebugString();
  }
  held.LetGo();
  if (closing.response.ntstatus() == kStatusPending) {
    const v1::RequestCompleted closed = events.NextCompletion();
    EXPECT_EQ(closed.kind(), v1::REQUEST_KIND_CLOSE_QP);
    EXPECT_EQ(closed.request_context(), 9u);
  }
  const v1::CqResultEx completion = pair.near.NextInitiator();
  EXPECT_EQ(completion.result().request_context(), 1u);
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  EXPECT_TRUE(pair.near.DrainReceive().empty());
}

}  // namespace
}  // namespace rnicd::test
