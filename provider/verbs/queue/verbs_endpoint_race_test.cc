// Queue pairs under several threads, and rare interleavings. The tests are also meant to run under the thread
// sanitizer.

#include <algorithm>
#include <random>
#include <thread>

#include "provider/api/traffic_test.h"
#include "provider/verbs/fake/verbs_fixture_test.h"
#include "provider/verbs/fake/verbs_hook_fixture_test.h"
#include "provider/verbs/queue/verbs_endpoint.h"

namespace rnicd::provider {
namespace {

using ::testing::IsEmpty;

constexpr QueuePairLimits kDeepLimits{.receive_depth = 64, .initiator_depth = 64};
// A card that completes requests by itself, at an uneven pace, on its own thread.
class Pace {
 public:
  Pace(FakeVerbs& fake, std::vector<uint32_t> queue_pairs, unsigned seed, int failure_in = 0)
      : thread_([this, &fake, numbers = std::move(queue_pairs), seed, failure_in] {
          std::mt19937 random(seed);
          while (!stop_) {
            const uint32_t number = numbers[random() % numbers.size()];
            switch (random() % 4) {
              case 0:
                fake.Receive(number, 0);
                break;
              case 1:
                std::this_thread::yield();
                break;
              default:
                fake.Complete(number, failure_in > 0 && random() % static_cast<unsigned>(failure_in) == 0
                                          ? IBV_WC_REM_ACCESS_ERR
                                          : IBV_WC_SUCCESS);
            }
          }
        }) {}
  ~Pace() {
    stop_ = true;
    thread_.join();
  }
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class VerbsEndpointRaceTest : public VerbsTest {
 protected:
  // Probed as often as there are ticks.
  VerbsEndpointRaceTest() : VerbsTest(ProbingOptions()) {}

  SharedPages pages_{8};
};

TEST_F(VerbsEndpointRaceTest, RequestsExecutedHereKeepTheirPlaceAmongThoseOfTheCard) {
  constexpr uint64_t kRequests = 2000;
  Side side(daemon_, kDeepLimits);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  const auto region = *side.domain().CreateFastRegion(8, true);
  const Pace pace(fake_, {side.number()}, 2);
  PostAll(side, kRequests, [&](uint64_t number) {
    switch (number % 4) {
      case 0:
        return FastRegister(number, region, {pages_.page(number % 8), pages_.page((number + 3) % 8)});
      case 1:
        return Write(number, {{.address = {Side::kBase}, .length = 8, .token = region->local_token()}}, {7});
      case 2:
        return number % 8 == 2 ? Invalidate(number, region)
                               : ReadAndInvalidate(
                                     number, {{.address = {Side::kBase}, .length = 8, .token = region->local_token()}});
      default:
        return Send(number);
    }
  });
  ASSERT_TRUE(side.Initiated(kRequests));
  ExpectAllInOrder(side.initiated(), kRequests);
  EXPECT_EQ(side.initiated().back().status, kOk);
}

TEST_F(VerbsEndpointRaceTest, WhateverEndsItEveryRequestIsReportedOnceAndThenNothing) {
  for (unsigned round = 0; round < 60; ++round) {
    Side side(daemon_, kDeepLimits);
    Side peer(daemon_, kDeepLimits);
    Connect(side, peer);
    const auto region = *side.domain().CreateFastRegion(8, true);
    const uint64_t regions = daemon_.provider().live_regions();
    uint64_t initiated = 0;
    uint64_t received = 0;
    uint64_t by_peer = 0;
    {
      const Pace pace(fake_, {side.number(), peer.number()}, round, round % 3 == 0 ? 100 : 0);
      std::vector<std::thread> threads;
      threads.emplace_back([&] {
        initiated = PostAll(side, kUntilRefused, [&](uint64_t number) {
          return number % 8 == 0   ? FastRegister(number, region, {pages_.page(0)})
                 : number % 8 == 4 ? Invalidate(number, region)
                                   : Write(number);
        });
      });
      threads.emplace_back([&] { received = PostAll(side, kUntilRefused, [](uint64_t n) { return Receive(n); }); });
      threads.emplace_back([&] { by_peer = PostAll(peer, kUntilRefused, [](uint64_t n) { return Send(n); }); });
      EXPECT_TRUE(Eventually([&] { return side.initiated().size() >= 20 || side.state() == QueuePairState::kError; }));
      switch (round % 4) {
        case 0:
          break;
        case 1:
          side.pair().Flush();
          break;
        case 2:
          side.pair().Disconnect();
          break;
        default:
          fake_.FailQp(side.number());
      }
      side.Shutdown();
      peer.Shutdown();
      for (std::thread& thread : threads) {
        thread.join();
      }
    }
    ExpectAllInOrder(side.initiated(), initiated);
    ExpectAllInOrder(side.received(), received);
    ExpectAllInOrder(peer.initiated(), by_peer);
    region->Retire();
    EXPECT_EQ(daemon_.provider().live_regions(), regions);
  }
}

TEST_F(VerbsEndpointRaceTest, ACardThatGoesEndsEverythingAndLetsEveryoneClose) {
  for (unsigned round = 0; round < 20; ++round) {
    FakeVerbs fake;
    {
      Daemon daemon(fake);
      Side side(daemon, kDeepLimits);
      Side peer(daemon, kDeepLimits);
      Connect(side, peer);
      const Pace pace(fake, {side.number(), peer.number()}, round);
      std::atomic<bool> stop = false;
      std::vector<std::thread> threads;
      threads.emplace_back([&] { PostAll(side, kUntilRefused, [](uint64_t number) { return Write(number); }); });
      threads.emplace_back([&] {
        while (!stop) {
          if (auto region = side.Register(kAllRights); region.ok()) {
            region->reset();
          }
        }
      });
      threads.emplace_back([&] {
        while (!stop && daemon.provider().OpenAdapter("fake0").ok()) {
        }
      });
      EXPECT_TRUE(side.Initiated(20));
      fake.RemoveDevice("fake0", EIO);
      EXPECT_TRUE(Eventually([&] { return side.state() == QueuePairState::kError; }));
      EXPECT_TRUE(Eventually([&] { return peer.state() == QueuePairState::kError; }));
      stop = true;
      for (std::thread& thread : threads) {
        thread.join();
      }
      EXPECT_EQ(daemon.events().size(), 1u);
    }
    EXPECT_EQ(fake.live(), FakeLive{});
    EXPECT_THAT(fake.violations(), IsEmpty());
  }
}

// --- moments ---

class VerbsMomentTest : public ::testing::Test {
 protected:
  ~VerbsMomentTest() override { EXPECT_THAT(fake_.violations(), IsEmpty()); }
  static FakeDevice Card(std::string name) {
    FakeDevice device;
    device.name = std::move(name);
    return device;
  }
  // Waits until the state of the queue pairs has been queried a few times.
  void AwaitTicks() {
    const uint64_t looks = fake_.calls("QueryQpState");
    EXPECT_TRUE(Eventually([&] { return fake_.calls("QueryQpState") >= looks + 3; }));
  }

  FakeVerbs fake_{{Card("fake0"), Card("fake1")}};
  HookedVerbs hooks_{fake_};
  Daemon daemon_{fake_, hooks_, ProbingOptions()};
};

TEST_F(VerbsMomentTest, ACardMayGoWhileAQueuePairIsMade) {
  Side clock(daemon_, kRoomyLimits, "fake1");
  ASSERT_TRUE(clock.ConnectTo(clock).ok());
  Side side(daemon_);
  auto queue = side.adapter().CreateCompletionQueue(4);
  hooks_.set_before([&](std::string_view call) {
    if (call == "CreateQp") {
      fake_.RemoveDevice("fake0");
      EXPECT_TRUE(Eventually([&] { return daemon_.events().size() == 1; }));
      AwaitTicks();
    }
  });
  RecordingListener listener;
  EXPECT_TRUE(FailedWith(side.domain().CreateQueuePair(kRoomyLimits, **queue, **queue, listener).status(),
                         ErrorReason::DEVICE_REMOVED));
  hooks_.set_before(nullptr);
}

TEST_F(VerbsMomentTest, AShutdownDuringAConnectLeavesItTheQueuePair) {
  Side side(daemon_);
  Side peer(daemon_);
  std::thread shutdown;
  std::atomic<int> changes = 0;
  hooks_.set_before([&](std::string_view call) {
    if (call == "ModifyQp" && changes++ == 0) {
      shutdown = std::thread([&] { side.Shutdown(); });
      EXPECT_TRUE(Eventually([&] { return side.state() == QueuePairState::kError; }));
      for (int attempt = 0; attempt < 1000 && fake_.calls("DestroyQp") == 0; ++attempt) {
        std::this_thread::yield();
      }
    }
  });
  const absl::Status status = side.ConnectTo(peer);
  EXPECT_TRUE(FailedWith(status, ErrorReason::QP_NOT_CONNECTABLE)) << status;
  shutdown.join();
  hooks_.set_before(nullptr);
}

TEST_F(VerbsMomentTest, AFlushDuringAConnectMakesItTooLate) {
  // Before the first and before the second change of state of the connect.
  for (const int moment : {0, 1}) {
    Side side(daemon_);
    Side peer(daemon_);
    std::atomic<int> changes = 0;
    hooks_.set_before([&](std::string_view call) {
      if (call == "ModifyQp" && changes++ == moment) {
        side.pair().Flush();
      }
    });
    const absl::Status status = side.ConnectTo(peer);
    EXPECT_TRUE(FailedWith(status, ErrorReason::QP_NOT_CONNECTABLE)) << moment << ": " << status;
    EXPECT_EQ(side.state(), QueuePairState::kError);
    EXPECT_EQ(fake_.state(side.number()), IBV_QPS_ERR);
    hooks_.set_before(nullptr);
  }
}

TEST_F(VerbsMomentTest, AFailureThatIsThisSidesOwnIsReadBeforeThePeerIsBlamed) {
  Side side(daemon_);
  ASSERT_TRUE(side.pair().Connect(FormatQpAddress(Foreigner())).ok());
  side.Post(Write(1));
  std::atomic<bool> failed = false;
  hooks_.set_before([&](std::string_view call) {
    if (call == "QueryQpState" && !failed.exchange(true)) {
      EXPECT_TRUE(fake_.Complete(side.number(), IBV_WC_LOC_PROT_ERR));
    }
  });
  ASSERT_TRUE(side.Initiated(1));
  hooks_.set_before(nullptr);
  EXPECT_EQ(side.initiated(), (Outcomes{{1, kWritten, NtStatus::kAccessViolation}}));
  side.Shutdown();
  EXPECT_EQ(side.peer_gone(), 0);
}

TEST_F(VerbsMomentTest, ACardMayGoWhileARequestIsPosted) {
  Side side(daemon_);
  Side peer(daemon_);
  Connect(side, peer);
  // A connection with something outstanding is not probed, so that the next request is that of the test.
  side.Post(Write(1));
  peer.Post(Write(1));
  hooks_.set_before([&](std::string_view call) {
    if (call == "PostSend") {
      fake_.RemoveDevice("fake0");
    }
  });
  side.Post(Write(2));
  ASSERT_TRUE(side.Initiated(2));
  EXPECT_EQ(side.initiated().back(), (Outcome{2, OperationType::kWrite, kCancelled}))
      << "as of a card that went before";
  EXPECT_TRUE(peer.listener().WaitForPeerGone());
  ASSERT_TRUE(Eventually([&] { return daemon_.events().size() == 1; }));
  EXPECT_TRUE(side.listener().WaitForPeerGone());
  hooks_.set_before(nullptr);
}

// A library may accept requests for a removed card and never complete them.
TEST_F(VerbsMomentTest, WhatIsPostedToACardThatIsGoneIsCancelled) {
  Side side(daemon_);
  Side clock(daemon_, kRoomyLimits, "fake1");
  ASSERT_TRUE(clock.ConnectTo(clock).ok());
  side.Post(Receive(1));
  fake_.RemoveDevice("fake0");
  ASSERT_TRUE(side.Received(1));
  AwaitTicks();
  hooks_.set_post_receive([](ibv_qp* /*qp*/, ibv_recv_wr& /*request*/) { return 0; });
  const absl::Status posted = side.pair().Enqueue(Receive(2)).status();
  if (posted.ok() && !side.Received(2)) {
    ADD_FAILURE() << "it is never reported, and Shutdown would wait for it without end";
    std::fflush(nullptr);
    std::_Exit(1);
  }
}

}  // namespace
}  // namespace rnicd::provider
