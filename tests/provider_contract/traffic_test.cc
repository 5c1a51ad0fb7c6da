// Traffic of several threads on any card: nothing is lost, nothing is reported twice, whatever ends it. The tests are
// also meant to run under the thread sanitizer.

#include <thread>

#include "provider/api/traffic_test.h"
#include "tests/provider_contract/contract_fixture.h"
#include "tests/provider_contract/test_card.h"

namespace rnicd::provider {
namespace {

constexpr QueuePairLimits kDeepLimits{.receive_depth = 64, .initiator_depth = 64};
WorkRequest PlainSend(uint64_t number) { return Send(number); }
WorkRequest PlainReceive(uint64_t number) { return Receive(number); }

class TrafficContract : public ::testing::TestWithParam<CardKind> {
 protected:
  const std::unique_ptr<TestedCard> card_ = GetParam().make();
  Provider& provider_ = card_->provider();
  const std::string adapter_ = card_->adapter();
};

INSTANTIATE_TEST_SUITE_P(Provider, TrafficContract, ::testing::ValuesIn(BusyCardKinds()), NameOf);

TEST_P(TrafficContract, SendsAndReceivesOfTwoThreadsAllMeet) {
  constexpr uint64_t kMessages = 2000;
  ProviderSide sender(provider_, adapter_, kDeepLimits);
  ProviderSide receiver(provider_, adapter_, kDeepLimits);
  Connect(sender, receiver);
  std::thread sends([&] {
    EXPECT_EQ(PostAll(sender, kMessages, [&](uint64_t number) { return Send(number, {sender.Entry(0, 8)}); }),
              kMessages);
  });
  EXPECT_EQ(PostAll(receiver, kMessages, [&](uint64_t number) { return Receive(number, {receiver.Entry(0, 8)}); }),
            kMessages);
  sends.join();
  ASSERT_TRUE(sender.Initiated(kMessages) && receiver.Received(kMessages)) << "somebody was not woken";
  ExpectAllInOrder(sender.initiated(), kMessages);
  ExpectAllInOrder(receiver.received(), kMessages);
  EXPECT_EQ(sender.initiated().back().status, kOk);
}

TEST_P(TrafficContract, BothSidesMayDoEverythingAtOnce) {
  constexpr uint64_t kMessages = 800;
  ProviderSide first(provider_, adapter_, kDeepLimits);
  ProviderSide second(provider_, adapter_, kDeepLimits);
  Connect(first, second);
  // Each side also writes and reads, in parts of the memory that no other request uses.
  const auto initiate = [](ProviderSide& side, ProviderSide& peer, uint64_t offset) {
    return [&side, &peer, offset](uint64_t number) {
      const RemoteToken token = peer.region()->remote_token();
      switch (number % 4) {
        case 0:
          return Write(number, {side.Entry(offset, 8)}, token, offset + 8);
        case 1:
          return Read(number, {side.Entry(offset + 16, 8)}, token, offset + 8);
        case 2:
          return Fenced(Write(number, {side.Entry(offset + 16, 8)}, token, offset + 24));
        default:
          return Send(number);
      }
    };
  };
  std::vector<std::thread> threads;
  threads.emplace_back([&] { PostAll(first, kMessages, initiate(first, second, 0)); });
  threads.emplace_back([&] { PostAll(second, kMessages, initiate(second, first, 1024)); });
  threads.emplace_back([&] { PostAll(first, kMessages / 4, PlainReceive); });
  threads.emplace_back([&] { PostAll(second, kMessages / 4, PlainReceive); });
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (ProviderSide* const side : {&first, &second}) {
    ASSERT_TRUE(side->Initiated(kMessages) && side->Received(kMessages / 4));
    ExpectAllInOrder(side->initiated(), kMessages);
    ExpectAllInOrder(side->received(), kMessages / 4);
    EXPECT_EQ(side->initiated().back().status, kOk);
  }
}

TEST_P(TrafficContract, AWaitForAPeerThatConnectsElsewhereIsNeverForgotten) {
  for (int round = 0; round < 50; ++round) {
    ProviderSide wanted(provider_, adapter_);
    ProviderSide elsewhere(provider_, adapter_);
    ProviderSide first(provider_, adapter_);
    ProviderSide second(provider_, adapter_);
    const auto wait_for = [&wanted, round](ProviderSide& side) {
      EXPECT_TRUE(side.ConnectTo(wanted).ok());
      if (PostAll(side, 1, PlainSend) == 0) {
        // The card's probe found before the send that the peer does not answer.
        EXPECT_TRUE(side.listener().WaitForPeerGone());
        return;
      }
      ASSERT_TRUE(side.Initiated(1)) << "round " << round;
      EXPECT_EQ(side.initiated()[0].status, kTimedOut);
    };
    std::thread waits([&] { wait_for(first); });
    std::thread waits_too([&] { wait_for(second); });
    EXPECT_TRUE(wanted.ConnectTo(elsewhere).ok());
    waits.join();
    waits_too.join();
    EXPECT_EQ(wanted.peer_gone(), 0);
  }
}

TEST_P(TrafficContract, ConnectingAndFlushingAtOnceFailsOneOrTheOther) {
  for (int round = 0; round < 100; ++round) {
    ProviderSide side(provider_, adapter_);
    ProviderSide peer(provider_, adapter_);
    std::thread flush([&] { side.pair().Flush(); });
    const absl::Status status = side.ConnectTo(peer);
    flush.join();
    EXPECT_TRUE(status.ok() || FailedWith(status, ErrorReason::QP_NOT_CONNECTABLE)) << status;
    EXPECT_EQ(side.state(), QueuePairState::kError);
  }
}

// The listener fails the test on any callback after Shutdown has returned.
TEST_P(TrafficContract, ShutdownWhileOtherThreadsPostReportsEverythingOnceAndThenNothing) {
  for (int round = 0; round < 30; ++round) {
    ProviderSide side(provider_, adapter_, kDeepLimits);
    ProviderSide peer(provider_, adapter_, kDeepLimits);
    Connect(side, peer);
    uint64_t initiated = 0;
    uint64_t received = 0;
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      initiated = PostAll(side, kUntilRefused, [&](uint64_t number) {
        const RemoteToken token = peer.region()->remote_token();
        return number % 3 == 0 ? Read(number, {side.Entry(0, 8)}, token)
                               : Write(number, {side.Entry(16, 8)}, token, 16);
      });
    });
    threads.emplace_back([&] { received = PostAll(side, kUntilRefused, PlainReceive); });
    threads.emplace_back([&] { PostAll(peer, kUntilRefused, PlainSend); });
    EXPECT_TRUE(side.Initiated(20) && side.Received(20));
    side.Shutdown();
    for (std::thread& thread : threads) {
      thread.join();
    }
    ExpectAllInOrder(side.initiated(), initiated);
    ExpectAllInOrder(side.received(), received);
    ASSERT_TRUE(peer.listener().WaitForPeerGone());
    EXPECT_EQ(peer.state(), QueuePairState::kError) << "its sends had nobody to go to";
  }
}

TEST_P(TrafficContract, RetiringAFastRegionWhileItIsUsedEndsItsRequests) {
  for (int round = 0; round < 30; ++round) {
    ProviderSide side(provider_, adapter_, kDeepLimits);
    ASSERT_TRUE(side.ConnectTo(side).ok());
    SharedPages pages(2);
    const std::shared_ptr<DeviceFastRegion> region = *side.domain().CreateFastRegion(8, true);
    uint64_t posted = 0;
    std::thread registers([&] {
      posted = PostAll(side, kUntilRefused, [&](uint64_t number) {
        return number % 2 == 0 ? FastRegister(number, region, {pages.page(0)}) : Invalidate(number, region);
      });
    });
    EXPECT_TRUE(side.Initiated(10));
    region->Retire();
    registers.join();
    EXPECT_FALSE(region->registered());
    side.Shutdown();
    ExpectAllInOrder(side.initiated(), posted);
  }
}

TEST_P(TrafficContract, AQueuePairConnectedToItselfServesItself) {
  constexpr uint64_t kMessages = 1000;
  ProviderSide side(provider_, adapter_, kDeepLimits);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  std::thread sends([&] { PostAll(side, kMessages, PlainSend); });
  PostAll(side, kMessages, PlainReceive);
  sends.join();
  EXPECT_TRUE(side.Initiated(kMessages));
  side.Shutdown();
  ExpectAllInOrder(side.initiated(), kMessages);
  ExpectAllInOrder(side.received(), kMessages);
}

// --- a card that fails at every step ---

TEST(FailingCard, WhateverFailsEveryAcceptedRequestIsReportedOnceAndInOrder) {
  for (uint32_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    const std::unique_ptr<TestedCard> card =
        MakeTestCard({.seed = seed, .delays = 300, .refusals = 30, .failures = seed % 4 == 0 ? 0U : 10U});
    ProviderSide side(card->provider(), card->adapter(), kDeepLimits);
    ProviderSide peer(card->provider(), card->adapter(), kDeepLimits);
    for (const auto& [from, to] : {std::pair(&side, &peer), std::pair(&peer, &side)}) {
      while (FailedWith(from->ConnectTo(*to), ErrorReason::DEVICE_FAILED)) {
      }
    }
    const std::shared_ptr<DeviceFastRegion> region = *side.domain().CreateFastRegion(8, true);
    SharedPages pages(1);
    uint64_t initiated = 0;
    uint64_t received = 0;
    uint64_t by_peer = 0;
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      initiated = PostAll(side, kUntilRefused, [&](uint64_t number) {
        switch (number % 4) {
          case 0:
            return FastRegister(number, region, {pages.page(0)});
          case 1:
            return Read(number, {side.Entry(0, 8)}, peer.region()->remote_token());
          case 2:
            return Invalidate(number, region);
          default:
            return Fenced(Write(number, {side.Entry(16, 8)}, peer.region()->remote_token(), 16));
        }
      });
    });
    threads.emplace_back([&] { received = PostAll(side, kUntilRefused, PlainReceive); });
    threads.emplace_back([&] { by_peer = PostAll(peer, kUntilRefused, PlainSend); });
    EXPECT_TRUE(Eventually([&] { return side.initiated().size() >= 200 || side.state() == QueuePairState::kError; }));
    if (seed % 2 == 0) {
      side.pair().Flush();
    }
    side.Shutdown();
    peer.Shutdown();
    for (std::thread& thread : threads) {
      thread.join();
    }
    ExpectAllInOrder(side.initiated(), initiated);
    ExpectAllInOrder(side.received(), received);
    ExpectAllInOrder(peer.initiated(), by_peer);
  }
}

}  // namespace
}  // namespace rnicd::provider
