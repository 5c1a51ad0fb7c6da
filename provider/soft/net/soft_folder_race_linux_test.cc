// Transfers between the cards of two daemons while one of the two ends, with all threads.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/api/recording_connector_test.h"
#include "provider/soft/net/soft_folder_linux.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

// A daemon with a card, on the network of a folder.
struct LinkedDaemon {
  LinkedDaemon(const std::string& folder, const char* host)
      : ip(*IpAddress::FromText(host)),
        network(*SoftFolder::Open(folder, {ip})),
        provider({.addresses = {ip}, .network = network}, random) {}

  const IpAddress ip;
  KernelRandom random;
  const std::shared_ptr<SoftFolder> network;
  SoftProvider provider;
};

// A connection between the second daemon, which reaches the first at once, and the first.
struct LinkedPair {
  LinkedPair(LinkedDaemon& second, LinkedDaemon& first, uint16_t port)
      : near(second.provider, "soft0"), far(first.provider, "soft0") {
    const auto requests = std::make_shared<RecordingRequests>();
    const NetworkAddress address{.ip = first.ip, .port = port};
    const auto listener = *far.adapter().Listen(address, requests);
    near_end = *near.adapter().CreateConnector(near_events);
    EXPECT_TRUE(near_end->Connect(near.pair(), {.local = {.ip = second.ip, .port = port}, .peer = address}, {}).ok());
    taken = requests->Take();
    EXPECT_TRUE(taken.request.connector->Accept(far.pair(), {}).ok());
    EXPECT_EQ(near_events->WaitFor(1), Events{"accepted"});
    EXPECT_TRUE(near_end->CompleteConnect({}).ok());
    EXPECT_EQ(near_events->WaitFor(2).size(), 2U);
    EXPECT_EQ(taken.events->WaitFor(1), Events{"established"});
  }

  ProviderSide near;
  ProviderSide far;
  const std::shared_ptr<RecordingConnector> near_events = std::make_shared<RecordingConnector>();
  std::unique_ptr<DeviceConnector> near_end;
  RecordingRequests::Taken taken;
};

// Many of each kind; their number. Each page of a side is written for one purpose only.
size_t PostMany(ProviderSide& own, ProviderSide& peer) {
  constexpr uint64_t kRequests = 20;
  constexpr uint64_t kBytes = kNdkPageBytes;
  size_t posted = 0;
  for (uint64_t count = 0; count < kRequests; ++count) {
    (void)own.TryPost(Receive(count, {own.Entry(kBytes, 64)}));
    const RemoteToken token = peer.region()->remote_token();
    posted += own.TryPost(Send(count, {own.Entry(0, 64)})).ok() ? 1 : 0;
    posted += own.TryPost(Write(count, {own.Entry(0, kBytes)}, token, 2 * kBytes)).ok() ? 1 : 0;
    posted += own.TryPost(Read(count, {own.Entry(3 * kBytes, kBytes)}, token)).ok() ? 1 : 0;
  }
  return posted;
}

enum class End : uint8_t { kNetwork, kShutdown, kFlush, kDisconnect };

TEST(SoftFolderRace, EveryRequestEndsWhateverEndsFirst) {
  constexpr int kRounds = 24;
  constexpr size_t kPairs = 3;
  std::string folder = "/tmp/soft-race-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
    LinkedDaemon first(folder, "198.18.1.1");
    LinkedDaemon second(folder, "198.18.2.1");
    std::vector<std::unique_ptr<LinkedPair>> pairs;
    for (uint16_t port = 1; port <= kPairs; ++port) {
      pairs.push_back(std::make_unique<LinkedPair>(second, first, port));
    }
    const auto end = static_cast<End>(round % 4);
    std::vector<std::thread> threads;
    for (const auto& pair : pairs) {
      threads.emplace_back([&pair = *pair] { EXPECT_TRUE(pair.near.Initiated(PostMany(pair.near, pair.far))); });
      threads.emplace_back([&pair = *pair, end] {
        const size_t posted = PostMany(pair.far, pair.near);
        // A daemon that stops its own network has ended its queue pairs before.
        EXPECT_TRUE(end == End::kNetwork || pair.far.Initiated(posted));
      });
    }
    switch (end) {
      case End::kNetwork:
        first.network->Stop();
        break;
      case End::kShutdown:
        pairs.front()->far.Shutdown();
        break;
      case End::kFlush:
        pairs.front()->near.pair().Flush();
        break;
      case End::kDisconnect:
        pairs.front()->far.pair().Disconnect();
        break;
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rnicd::provider
