// Posts of the C++ library that do not wait for their outcome, and what a program needs beside them: outstanding
// requests, polling into an array, a descriptor for its event loop, and the flush when the peer ends.
#include <sys/epoll.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

using Path = rnicd::DataPath;

// A session with a queue pair.
struct Poster {
  Poster(const DaemonProcess& daemon, Path path, const QueuePairOptions& options = {})
      : client(Must(Client::Connect({.socket_dir = daemon.socket_dir(), .label = "posts", .data_path = path}))),
        memory(Must(Memory::Allocate(client, {.size = kMiB}))),
        region(Must(MemoryRegion::Register(memory, kMrFlagRemoteWrite))),
        queue(Must(CompletionQueue::Create(client, 256))),
        pair(Must(QueuePair::Create(queue, queue, options))) {}

  // A write of 8 bytes into its own memory.
  WorkChain Write(uint64_t context, uint32_t flags = 0) const {
    return WorkChain().Write({Sge::Of(memory.bytes().first(8), region.local_token())},
                             {.address = {region.base_address().value + kClientPage}, .token = region.remote_token()},
                             {.flags = flags, .context = context});
  }
  static WorkChain Refused(uint64_t context) {
    return WorkChain().Send(std::vector<Sge>(200, Sge::At(VirtualAddress{64}, 8, LocalToken{1})), {.context = context});
  }
  // So many completions, in the order in which they came.
  std::vector<Completion> Take(size_t count) {
    std::vector<Completion> completions(count);
    for (size_t taken = 0; taken < count;) {
      const size_t more = Must(queue.PollFor(std::span(completions).subspan(taken), kTimeout));
      EXPECT_NE(more, 0U) << "only " << taken << " completions";
      if (more == 0) {
        break;
      }
      taken += more;
    }
    return completions;
  }

  Client client;
  Memory memory;
  MemoryRegion region;
  CompletionQueue queue;
  QueuePair pair;
};

struct OnePair : Poster {
  OnePair(const DaemonProcess& daemon, Path path, const QueuePairOptions& options = {})
      : Poster(daemon, path, options) {
    EXPECT_TRUE(pair.Connect(pair.address()).ok());
  }
};

class LibrnicdWithoutOutcome : public Librnicd {
 protected:
  static constexpr std::array kPaths = {Path::kCalls, Path::kRings};
};

TEST_F(LibrnicdWithoutOutcome, RequestsCompleteInOrder) {
  for (const Path path : kPaths) {
    OnePair side(daemon(), path, {.initiator_queue_depth = 200});
    for (uint64_t context = 0; context < 200; ++context) {
      ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(context)).ok());
    }
    const std::vector<Completion> completions = side.Take(200);
    for (uint64_t context = 0; context < 200; ++context) {
      EXPECT_TRUE(completions[context].ok());
      EXPECT_EQ(completions[context].request_context, context);
    }
  }
}

TEST_F(LibrnicdWithoutOutcome, ARefusalCompletesInItsPlace) {
  for (const Path path : kPaths) {
    OnePair side(daemon(), path);
    ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(1)).ok());
    ASSERT_TRUE(side.pair.PostWithoutOutcome(Poster::Refused(2)).ok());
    ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(3, kOpFlagSilentSuccess)).ok());
    const std::vector<Completion> completions = side.Take(3);
    EXPECT_TRUE(completions[0].ok());
    EXPECT_EQ(completions[1].reason, ErrorReason::SGE_COUNT);
    EXPECT_EQ(completions[1].request_context, 2U);
    EXPECT_EQ(completions[2].status, NtStatus::kCancelled);
    EXPECT_EQ(Must(side.pair.State()), QueuePairState::kError);
    EXPECT_EQ(side.pair.Outstanding().initiator, 0U);
  }
}

TEST_F(LibrnicdWithoutOutcome, CallsDoNotOvertakePosts) {
  for (const Path path : kPaths) {
    OnePair side(daemon(), path, {.initiator_queue_depth = 200});
    for (uint64_t context = 0; context < 100; ++context) {
      ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(context)).ok());
    }
    ASSERT_TRUE(side.pair.Flush().ok());
    for (const Completion& completion : side.Take(100)) {
      EXPECT_TRUE(completion.ok());
    }
  }
}

TEST_F(LibrnicdWithoutOutcome, OutstandingRequestsAreKnownAndLimited) {
  for (const Path path : kPaths) {
    OnePair side(daemon(), path, {.receive_queue_depth = 2, .initiator_queue_depth = 4});
    for (const uint32_t flags : {kOpFlagSilentSuccess, kOpFlagSilentSuccess, kOpFlagSilentSuccess, 0U}) {
      ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(1, flags)).ok());
    }
    EXPECT_EQ(side.pair.Outstanding().initiator, 4U) << "silent ones, too";
    EXPECT_TRUE(FailedWith(side.pair.PostWithoutOutcome(side.Write(2)), ErrorReason::QUEUE_FULL));
    EXPECT_EQ(Must(side.pair.Post(WorkChain().Receive({}, {}).Receive({}, {}).Receive({}, {}))).posted, 2U);
    EXPECT_EQ(side.pair.Outstanding().receive, 2U);
    side.Take(1);
    EXPECT_EQ(side.pair.Outstanding().initiator, 0U);
    EXPECT_TRUE(side.pair.PostWithoutOutcome(side.Write(3)).ok());
    EXPECT_TRUE(side.Take(1).front().ok());
  }
}

TEST_F(LibrnicdWithoutOutcome, AnEventLoopSleepsOnTheQueuesDescriptor) {
  OnePair side(daemon(), Path::kRings);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, Must(side.queue.Descriptor()), &event), 0);
  constexpr int kForever = -1;
  for (uint64_t round = 0; round < 200; ++round) {
    ASSERT_TRUE(side.pair.PostWithoutOutcome(side.Write(round)).ok());
    std::array<Completion, 4> completions;
    size_t count = 0;
    while (count == 0) {
      if (Must(side.queue.PrepareToWait())) {
        ASSERT_EQ(epoll_wait(epoll, &event, 1, kForever), 1);
      }
      side.queue.StopWaiting();
      count = Must(side.queue.Poll(completions));
    }
    EXPECT_EQ(completions[0].request_context, round);
  }
  close(epoll);
  OnePair by_calls(daemon(), Path::kCalls);
  EXPECT_TRUE(FailedWith(by_calls.queue.Descriptor().status(), ErrorReason::RINGS_UNAVAILABLE));
}

TEST_F(LibrnicdWithoutOutcome, AQueuePairIsFlushedWithItsPeerWhereAsked) {
  for (const Path path : kPaths) {
    Poster flushed(daemon(), path, {.flush_with_peer = true});
    Poster kept(daemon(), path);
    for (Poster* const side : {&flushed, &kept}) {
      Poster peer(daemon(), path);
      ASSERT_TRUE(side->pair.Connect(peer.pair.address()).ok());
      ASSERT_TRUE(peer.pair.Connect(side->pair.address()).ok());
      ASSERT_TRUE(side->pair.PostWithoutOutcome(WorkChain().Receive({}, {.context = 7})).ok());
      ASSERT_TRUE(peer.pair.Disconnect().ok());
    }
    const Completion receive = flushed.Take(1).front();
    EXPECT_EQ(receive.request_context, 7U);
    EXPECT_EQ(receive.status, NtStatus::kCancelled);
    EXPECT_EQ(Must(flushed.pair.State()), QueuePairState::kError);
    EXPECT_EQ(Must(kept.pair.State()), QueuePairState::kReadyToSend);
  }
}

TEST_F(LibrnicdWithoutOutcome, AMappedQueueReservesWhatIsAskedFor) {
  const Client client = MustConnect({.label = "depth", .data_path = Path::kRings});
  CompletionQueue exact = Must(CompletionQueue::Create(client, 64));
  EXPECT_TRUE(FailedWith(exact.Resize(65), ErrorReason::ABOVE_MAPPED_DEPTH));
  CompletionQueue roomy = Must(CompletionQueue::Create(client, {.depth = 64, .depth_max = 128}));
  EXPECT_TRUE(roomy.Resize(128).ok());
}

}  // namespace
}  // namespace rnicd::test
