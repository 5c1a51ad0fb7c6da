// Queue pairs under several threads. Each test also says something to the thread sanitizer.

#include <thread>

#include "provider/api/traffic_test.h"
#include "tests/provider_contract/contract_fixture.h"

namespace rnicd::provider {
namespace {

constexpr QueuePairLimits kRaceLimits{.receive_depth = 64, .initiator_depth = 64};
constexpr size_t kRequests = 10;

class RaceContract : public ::testing::TestWithParam<CardKind> {
 protected:
  // Two sides that are not connected, for one round of a race.
  struct Pair {
    explicit Pair(TestedCard& card)
        : first(card.provider(), card.adapter(), kRaceLimits), second(card.provider(), card.adapter(), kRaceLimits) {}
    ProviderSide first;
    ProviderSide second;
  };

  const std::unique_ptr<TestedCard> card_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Provider, RaceContract, ::testing::ValuesIn(BusyCardKinds()), NameOf);

TEST_P(RaceContract, ConnectingAndPostingAtOnceLosesNothing) {
  for (int round = 0; round < 150; ++round) {
    Pair sides(*card_);
    const auto play = [](ProviderSide& side, ProviderSide& peer) {
      EXPECT_TRUE(side.ConnectTo(peer).ok());
      side.Post(Send(0));
      side.Post(Send(1));
    };
    std::vector<std::thread> threads;
    for (ProviderSide* const side : {&sides.first, &sides.second}) {
      threads.emplace_back([side] {
        side->Post(Receive(0));
        side->Post(Receive(1));
      });
    }
    threads.emplace_back([&] { play(sides.first, sides.second); });
    play(sides.second, sides.first);
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (ProviderSide* const side : {&sides.first, &sides.second}) {
      ASSERT_TRUE(side->Initiated(2) && side->Received(2)) << "round " << round;
      ExpectAllInOrder(side->initiated(), 2);
      ExpectAllInOrder(side->received(), 2);
      EXPECT_EQ(side->initiated().back().status, kOk);
      EXPECT_EQ(side->peer_gone(), 0);
    }
  }
}

TEST_P(RaceContract, BothSidesMayShutDownAtOnce) {
  for (int round = 0; round < 100; ++round) {
    Pair sides(*card_);
    Connect(sides.first, sides.second);
    const RemoteToken first_token = sides.first.region()->remote_token();
    const RemoteToken second_token = sides.second.region()->remote_token();
    for (uint64_t number = 0; number < kRequests; ++number) {
      sides.first.Post(Read(number, {sides.first.Entry(0, 8)}, second_token));
      sides.second.Post(Read(number, {sides.second.Entry(16, 8)}, first_token, 16));
      sides.first.Post(Receive(number));
      sides.second.Post(Receive(number));
    }
    std::thread other([&] { sides.second.Shutdown(); });
    sides.first.Shutdown();
    other.join();
    for (ProviderSide* const side : {&sides.first, &sides.second}) {
      ExpectAllInOrder(side->initiated(), kRequests);
      ExpectAllInOrder(side->received(), kRequests);
    }
  }
}

TEST_P(RaceContract, FlushesOfManyThreadsAreOne) {
  for (int round = 0; round < 100; ++round) {
    Pair sides(*card_);
    ProviderSide& side = sides.first;
    Connect(side, sides.second);
    for (uint64_t number = 0; number < kRequests; ++number) {
      side.Post(Send(number));
      side.Post(Receive(number));
    }
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&side, index] { index == 0 ? side.pair().Disconnect() : side.pair().Flush(); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    side.Shutdown();
    ExpectAllInOrder(side.initiated(), kRequests);
    ExpectAllInOrder(side.received(), kRequests);
    ASSERT_TRUE(sides.second.listener().WaitForPeerGone());
  }
}

}  // namespace
}  // namespace rnicd::provider
