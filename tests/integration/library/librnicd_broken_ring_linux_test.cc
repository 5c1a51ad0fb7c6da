// A ring that breaks while the session goes on, with posts in it that the daemon has not taken.
#include <array>
#include <csignal>
#include <functional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "ring/shared_word.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/integration/library/mapped_rings.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// A queue pair that is connected to itself. One receive is posted and one write has completed.
struct BreakingRing {
  explicit BreakingRing(const DaemonProcess& daemon)
      : client(Must(Client::Connect({.socket_dir = daemon.socket_dir(), .data_path = rnicd::DataPath::kRings}))),
        queue(Must(CompletionQueue::Create(client, 64))),
        pair(Must(QueuePair::Create(queue, queue, {.qp_context = 9}))) {
    EXPECT_TRUE(pair.Connect(pair.address()).ok());
    EXPECT_TRUE(pair.PostWithoutOutcome(WorkChain().Receive({}, {.context = 1})).ok());
    EXPECT_TRUE(pair.PostWithoutOutcome(WorkChain().Write({}, {}, {.context = 2})).ok());
    EXPECT_EQ(Must(queue.PollFor(std::span(completions), kTimeout)), 1u);
  }

  // Posts two writes and a receive while the daemon is held, which then finds indices in the ring that are impossible.
  void Break(DaemonProcess& daemon) {
    EXPECT_TRUE(daemon.process().StopAndWait());
    EXPECT_TRUE(pair.PostWithoutOutcome(WorkChain().Write({}, {}, {.context = 3})).ok());
    EXPECT_TRUE(pair.PostWithoutOutcome(WorkChain().Receive({}, {.context = 4}).Write({}, {}, {.context = 5})).ok());
    for (ring::RingHeader* const header : MappedRings()) {
      ring::StoreRelease(header->completion_head, header->completion_head + 1);
    }
    daemon.process().Signal(SIGCONT);
  }

  // The next completion, which was flushed.
  uint64_t Next(const std::function<size_t(std::span<Completion>)>& poll) {
    size_t count = 0;
    EXPECT_TRUE(Eventually([&] { return (count = poll(std::span(completions).first(1))) != 0; }));
    EXPECT_EQ(completions[0].reason, ErrorReason::REQUEST_FLUSHED);
    EXPECT_EQ(completions[0].qp_context, 9u);
    EXPECT_EQ(completions[0].queue_pair, pair.id());
    return completions[0].request_context;
  }
  // What was posted before comes first, then what was lost, in the order of its queue.
  void ExpectLost(const std::function<size_t(std::span<Completion>)>& poll) {
    for (const uint64_t context : {1, 4, 3, 5}) {
      EXPECT_EQ(Next(poll), context);
    }
    EXPECT_EQ(pair.Outstanding().initiator, 0u);
    EXPECT_EQ(pair.Outstanding().receive, 0u);
  }
  size_t Poll(std::span<Completion> to) { return Must(queue.Poll(to)); }

  Client client;
  CompletionQueue queue;
  QueuePair pair;
  std::array<Completion, 8> completions;
};

class LibrnicdBrokenRing : public Librnicd {};

TEST_F(LibrnicdBrokenRing, PostsThatItLostCompleteForAProgramThatPollsBusily) {
  BreakingRing side(daemon());
  side.Break(daemon());
  side.ExpectLost([&](auto to) {
    size_t count = 0;
    for (int turn = 0; turn < 5000 && count == 0; ++turn) {
      count = side.Poll(to);
    }
    return count;
  });
}

TEST_F(LibrnicdBrokenRing, PostsThatItLostWakeAProgramThatWaitsForCompletions) {
  BreakingRing side(daemon());
  side.Break(daemon());
  side.ExpectLost([&](auto to) { return Must(side.queue.PollFor(to, kTimeout)); });
}

TEST_F(LibrnicdBrokenRing, PostsThatItLostNotify) {
  BreakingRing side(daemon());
  EXPECT_TRUE(side.queue.Arm(CqNotifyType::kAny).ok());
  side.Break(daemon());
  EXPECT_TRUE(Must(side.queue.WaitForNotification(kTimeout)));
  side.ExpectLost([&](auto to) { return side.Poll(to); });
}

TEST_F(LibrnicdBrokenRing, PostsThatItLostKeepAnEventLoopFromSleeping) {
  BreakingRing side(daemon());
  (void)Must(side.queue.Descriptor());
  side.Break(daemon());
  EXPECT_TRUE(Eventually([&] {
    const bool may_sleep = Must(side.queue.PrepareToWait());
    side.queue.StopWaiting();
    return !may_sleep;
  }));
  side.ExpectLost([&](auto to) { return side.Poll(to); });
}

// It goes by a call, behind what was lost: the queue pair has failed.
TEST_F(LibrnicdBrokenRing, ALaterPostIsFlushedToo) {
  BreakingRing side(daemon());
  side.Break(daemon());
  const auto wait = [&](auto to) { return Must(side.queue.PollFor(to, kTimeout)); };
  side.ExpectLost(wait);
  EXPECT_TRUE(side.pair.PostWithoutOutcome(WorkChain().Write({}, {}, {.context = 6})).ok());
  EXPECT_EQ(side.Next(wait), 6u);
  EXPECT_EQ(side.pair.Outstanding().initiator, 0u);
}

}  // namespace
}  // namespace rnicd::test
