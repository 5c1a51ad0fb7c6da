#include "provider/soft/soft_fabric.h"

#include <set>
#include <string>

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

class SoftFabricTest : public ::testing::Test {
 protected:
  std::shared_ptr<QueuePairEngine> Endpoint() { return SoftEndpoint::Create(card_.nic(), 1, kRoomyLimits, listener_); }

  SoftCard card_;
  RecordingListener listener_;
};

TEST_F(SoftFabricTest, AnEndpointIsFoundByItsAddressUntilItIsShutDown) {
  const auto first = Endpoint();
  const auto second = Endpoint();
  EXPECT_NE(first->address(), second->address());
  EXPECT_LE(first->address().size(), 64u);
  EXPECT_EQ(card_.fabric().Find(first->address()), first);
  EXPECT_EQ(card_.fabric().Find(second->address()), second);
  first->Shutdown();
  EXPECT_EQ(card_.fabric().Find(first->address()), nullptr);
  EXPECT_EQ(card_.fabric().Find(second->address()), second);
  second->Shutdown();
}

TEST_F(SoftFabricTest, NoMadeUpAddressIsFound) {
  const auto endpoint = Endpoint();
  const std::string address = endpoint->address();
  std::string flipped = address;
  flipped[3] = static_cast<char>(flipped[3] ^ 1);
  for (const std::string& made_up : {std::string(), std::string("x"), std::string(8, '\0'), std::string(64, 'a'),
                                     address.substr(1), address + "x", address + address, flipped}) {
    EXPECT_EQ(card_.fabric().Find(made_up), nullptr) << made_up.size();
  }
  endpoint->Shutdown();
}

TEST_F(SoftFabricTest, ADeadEndpointIsNotFound) {
  auto endpoint = Endpoint();
  const std::string address = endpoint->address();
  endpoint.reset();
  EXPECT_EQ(card_.fabric().Find(address), nullptr);
}

TEST_F(SoftFabricTest, ANumberThatIsNotAnEndpointYetIsNotFound) {
  EXPECT_EQ(card_.fabric().Find(SoftFabric::AddressOf(card_.fabric().NewNumber())), nullptr);
}

TEST(SoftFabric, NumbersAreUniqueAndNeverZero) {
  class Repeating final : public RandomSource {
   public:
    uint64_t Next() override { return next_++ / 3; }

   private:
    uint64_t next_ = 0;
  } random;
  SoftFabric fabric(random, std::make_unique<ManualWorker>());
  std::set<uint64_t> seen;
  for (int index = 0; index < 100; ++index) {
    EXPECT_TRUE(seen.insert(fabric.NewNumber()).second);
  }
  EXPECT_FALSE(seen.contains(0));
  EXPECT_EQ(*seen.rbegin(), 100u);
}

TEST(SoftFabric, ARemovedNumberMayComeAgain) {
  class Constant final : public RandomSource {
   public:
    uint64_t Next() override { return 5; }
  } random;
  SoftFabric fabric(random, std::make_unique<ManualWorker>());
  EXPECT_EQ(fabric.NewNumber(), 5u);
  fabric.Remove(SoftFabric::AddressOf(5));
  EXPECT_EQ(fabric.NewNumber(), 5u);
}

}  // namespace
}  // namespace rnicd::provider
