// Memory under several threads: no byte moves after the call that forbids it. The behaviour of all cards is tested in
// tests/provider_contract. The tests are also meant to run under the thread sanitizer.

#include <algorithm>
#include <atomic>
#include <thread>

#include "provider/api/traffic_test.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr QueuePairLimits kDeepLimits{.receive_depth = 256, .initiator_depth = 256};
// With a real engine, and reads that take long enough to be overtaken.
class SoftEndpointRaceTest : public ::testing::Test {
 protected:
  SoftCard card_{{.read_delay = std::chrono::microseconds(20)}, std::make_unique<ThreadEngine>()};
};

TEST_F(SoftEndpointRaceTest, ShutdownWhileThePeerSendsCompletesThePeersRequestsToo) {
  for (int round = 0; round < 40; ++round) {
    SoftSide side(card_, kDeepLimits);
    SoftSide peer(card_, kDeepLimits);
    Connect(side, peer);
    uint64_t sent = 0;
    uint64_t received = 0;
    std::thread sends([&] {
      sent = PostAll(peer, kUntilRefused, [&](uint64_t number) { return Send(number, {peer.Entry(0, 64)}); });
    });
    std::thread receives([&] {
      received = PostAll(side, kUntilRefused, [&](uint64_t number) { return Receive(number, {side.Entry(0, 64)}); });
    });
    EXPECT_TRUE(side.listener().WaitFor(WorkQueue::kReceive, 50));
    side.Shutdown();
    // Only the owner uses the memory now: the thread sanitizer would report a late copy.
    std::fill(side.bytes().begin(), side.bytes().end(), std::byte{0xff});
    sends.join();
    receives.join();
    EXPECT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, sent));
    ExpectAllInOrder(peer.initiated(), sent);
    ExpectAllInOrder(side.received(), received);
    EXPECT_EQ(side.bytes()[0], std::byte{0xff});
    EXPECT_EQ(peer.peer_gone(), 1);
  }
}

TEST_F(SoftEndpointRaceTest, AfterDisconnectNoTransferReachesTheMemory) {
  for (int round = 0; round < 40; ++round) {
    SoftSide side(card_, kDeepLimits);
    SoftSide peer(card_, kDeepLimits);
    Connect(side, peer);
    uint64_t posted = 0;
    std::thread writes([&] {
      posted = PostAll(peer, kUntilRefused, [&](uint64_t number) {
        const RemoteToken token = side.region().remote_token();
        return number % 2 == 0 ? Write(number, {peer.Entry(0, kNdkPageBytes)}, token)
                               : Read(number, {peer.Entry(kNdkPageBytes, kNdkPageBytes)}, token);
      });
    });
    EXPECT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, 20));
    side.endpoint().Disconnect();
    std::fill(side.bytes().begin(), side.bytes().end(), std::byte{0xff});
    writes.join();
    EXPECT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, posted));
    ExpectAllInOrder(peer.initiated(), posted);
    EXPECT_EQ(side.bytes()[0], std::byte{0xff});
  }
}

TEST_F(SoftEndpointRaceTest, DeregisteringWhileThePeerWritesEndsTheConnectionAndSparesTheMemory) {
  for (int round = 0; round < 40; ++round) {
    SoftSide side(card_, kDeepLimits);
    SoftSide peer(card_, kDeepLimits);
    Connect(side, peer);
    uint64_t posted = 0;
    std::thread writes([&] {
      posted = PostAll(peer, kUntilRefused, [&](uint64_t number) {
        return Write(number, {peer.Entry(0, kNdkPageBytes)}, side.region().remote_token());
      });
    });
    EXPECT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, 20));
    ASSERT_TRUE(side.region().Deregister().ok());
    std::fill(side.bytes().begin(), side.bytes().end(), std::byte{0xff});
    writes.join();
    EXPECT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, posted));
    ExpectAllInOrder(peer.initiated(), posted);
    EXPECT_EQ(side.bytes()[0], std::byte{0xff});
    EXPECT_EQ(side.state(), QueuePairState::kError);
  }
}

// Retire comes from the owner while requests of two queue pairs register, invalidate and reach through the region.
TEST_F(SoftEndpointRaceTest, RetiringAFastRegionWhileItIsUsedSparesTheMemory) {
  for (int round = 0; round < 40; ++round) {
    SoftSide side(card_, kDeepLimits);
    SoftSide peer(card_, kDeepLimits);
    Connect(side, peer);
    std::vector<std::byte> pages(kNdkPageBytes);
    const std::shared_ptr<SoftFastRegion> region = *SoftFastRegion::Create(card_.nic(), side.domain());
    std::atomic<uint32_t> token{0};
    std::thread registers([&] {
      PostAll(side, kUntilRefused, [&](uint64_t number) {
        if (number % 2 == 1) {
          return Request(number, {}, InvalidateWork{.region = region, .window = nullptr});
        }
        token = SoftKeyTable::NextVariant(region->remote_token()).value;
        return FastRegister(number, region, {pages});
      });
    });
    std::thread reaches([&] {
      // Directly through the key, because a write at the wrong moment would end the connection.
      while (side.state() == QueuePairState::kReadyToSend) {
        SoftPins pins;
        if (pins.Add(card_.nic()->keys().Find(RemoteToken{token}), {.domain = side.domain()}, SoftAccess::kRemoteWrite,
                     {SoftSide::kBase}, kNdkPageBytes)) {
          std::byte host{1};
          CopyInOrder({{&host, 1}}, pins.pieces(), 1);
        }
      }
    });
    EXPECT_TRUE(side.listener().WaitFor(WorkQueue::kInitiator, 20));
    region->Retire();
    std::fill(pages.begin(), pages.end(), std::byte{0xff});
    registers.join();
    reaches.join();
    EXPECT_EQ(pages[0], std::byte{0xff});
    EXPECT_FALSE(region->registered());
  }
}

}  // namespace
}  // namespace rnicd::provider
