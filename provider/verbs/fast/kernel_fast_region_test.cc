// Fast registrations by the kernel's module: when a token is in force, the cost of a chain, and the state after
// failures.

#include "provider/verbs/fast/kernel_fast_region.h"

#include <arpa/inet.h>

#include <map>

#include "provider/verbs/fake/kernel_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class KernelFastRegionTest : public KernelTest {
 protected:
  KernelFastRegionTest() { Connect(near_, far_); }

  std::shared_ptr<DeviceFastRegion> NewRegion(uint32_t pages = 16) {
    auto region = near_.domain().CreateFastRegion(pages, true);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  bool InForce(RemoteToken token) const {
    const auto all = module_->in_force();
    return std::ranges::any_of(all, [&](const auto& key) { return key.token == token.value; });
  }
  // Posts all before the first begins: a write is outstanding meanwhile.
  void PostBehindAWrite(const std::function<void()>& post) {
    near_.Post(Write(100));
    post();
    ASSERT_TRUE(fake_.Complete(near_.number()));
  }

  Side near_{daemon_};
  Side far_{daemon_};
  SharedPages pages_{8};
  const std::shared_ptr<DeviceFastRegion> region_ = NewRegion();
};

TEST_F(KernelFastRegionTest, TheTokenIsKnownAtThePostAndInForceFromItsTurnOn) {
  near_.Post(Write(1));
  const RemoteToken token = near_.Post(FastRegister(2, region_, {pages_.page(3), pages_.page(0)}));
  EXPECT_EQ(region_->remote_token(), token);
  EXPECT_FALSE(region_->registered());
  EXPECT_FALSE(InForce(token)) << "the card must not know it yet";
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kFast, kOk}));
  EXPECT_TRUE(region_->registered());
  ASSERT_THAT(module_->in_force(), SizeIs(1));
  const FakeFastModule::InForce made = module_->in_force().front();
  EXPECT_EQ(made.token, token.value);
  EXPECT_EQ(made.base, Side::kBase);
  EXPECT_EQ(made.length, 2 * kPage);
  EXPECT_THAT(made.pages, ElementsAre(pages_.page(3).data(), pages_.page(0).data()));
  EXPECT_EQ(daemon_.provider().fast_registrations().kernel, 1u);
  EXPECT_EQ(daemon_.provider().fast_registrations().composed, 0u) << "no page is mapped a second time";
}

TEST_F(KernelFastRegionTest, RequestsThatFollowEachOtherAreOneCallOfTheModule) {
  std::vector<std::shared_ptr<DeviceFastRegion>> regions;
  for (int index = 0; index < 5; ++index) {
    regions.push_back(NewRegion());
  }
  PostBehindAWrite([&] {
    for (size_t index = 0; index < regions.size(); ++index) {
      near_.Post(FastRegister(index, regions[index], {pages_.page(index)}));
    }
    near_.Post(Invalidate(5, regions[0]));
  });
  ASSERT_TRUE(near_.Initiated(7));
  EXPECT_THAT(module_->chains(), ElementsAre(6));
  EXPECT_THAT(module_->in_force(), SizeIs(4));
}

TEST_F(KernelFastRegionTest, AChainLongerThanACallTakesSeveralInOrder) {
  Side wide(daemon_, {.initiator_depth = 128});
  ASSERT_TRUE(wide.ConnectTo(wide).ok());
  std::vector<std::shared_ptr<DeviceFastRegion>> regions;
  for (int index = 0; index < 70; ++index) {
    regions.push_back(*wide.domain().CreateFastRegion(1, true));
  }
  wide.Post(Write(100));
  for (size_t index = 0; index < regions.size(); ++index) {
    wide.Post(FastRegister(index, regions[index], {pages_.page(0)}));
  }
  ASSERT_TRUE(fake_.Complete(wide.number()));
  ASSERT_TRUE(wide.Initiated(71));
  EXPECT_THAT(module_->chains(), ElementsAre(64, 6));
  for (size_t index = 0; index < regions.size(); ++index) {
    EXPECT_EQ(wide.initiated()[index + 1], (Outcome{index, kFast, kOk}));
  }
}

// A card may still read the page list of a registration that the same call invalidates.
TEST_F(KernelFastRegionTest, ASlotIsNotUsedAgainInTheCallThatInvalidatesIt) {
  std::vector<RemoteToken> tokens;
  PostBehindAWrite([&] {
    for (uint64_t index = 0; index < 3; ++index) {
      tokens.push_back(near_.Post(FastRegister(2 * index, region_, {pages_.page(index)})));
      near_.Post(Invalidate(2 * index + 1, region_));
    }
  });
  ASSERT_TRUE(near_.Initiated(7));
  for (const Outcome& outcome : near_.initiated()) {
    EXPECT_EQ(outcome.status, kOk);
  }
  EXPECT_THAT(module_->chains(), ElementsAre(4, 2)) << "two slots, then again the first";
  EXPECT_NE(tokens[0], tokens[1]);
  EXPECT_NE(tokens[0], tokens[2]) << "the slot of the first, another byte";
  EXPECT_FALSE(region_->registered());
  EXPECT_THAT(module_->in_force(), IsEmpty());
}

TEST_F(KernelFastRegionTest, NoTokenReturnsBefore512Registrations) {
  std::map<uint32_t, uint64_t> last;
  for (uint64_t index = 0; index < 1200; ++index) {
    const RemoteToken token = near_.Post(FastRegister(index, region_, {pages_.page(0)}));
    near_.Post(Invalidate(index, region_));
    const auto [before, first] = last.try_emplace(token.value, index);
    EXPECT_TRUE(first || index - before->second >= 512) << token.value;
    before->second = index;
  }
}

TEST_F(KernelFastRegionTest, ItsLocalTokenNamesWhatIsInForce) {
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(5)}));
  near_.Post(Send(2, {{.address = {Side::kBase}, .length = 8, .token = region_->local_token()}}));
  ASSERT_THAT(near_.posted(), SizeIs(1));
  EXPECT_EQ(near_.posted()[0].entries[0].lkey, token.value);
  ASSERT_TRUE(fake_.Complete(near_.number()));
  near_.Post(Invalidate(3, region_));
  near_.Post(Send(4, {{.address = {Side::kBase}, .length = 8, .token = region_->local_token()}}));
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(near_.initiated()[3].status, NtStatus::kAccessViolation);
}

TEST_F(KernelFastRegionTest, ASecondRegistrationFailsInItsTurnAndLeavesTheFirst) {
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  RemoteToken first;
  PostBehindAWrite([&] {
    first = near_.Post(FastRegister(1, region_, {pages_.page(0)}));
    near_.Post(FastRegister(2, region_, {pages_.page(1)}, kAllRights, backing));
    near_.Post(Invalidate(3, region_));
  });
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(near_.initiated()[1], (Outcome{1, kFast, kOk}));
  EXPECT_EQ(near_.initiated()[2], (Outcome{2, kFast, kRefused}));
  EXPECT_EQ(near_.initiated()[3], (Outcome{3, kInvalidated, kCancelled}));
  EXPECT_TRUE(InForce(first));
  EXPECT_EQ(backing.use_count(), 1);
}

TEST_F(KernelFastRegionTest, ARegistrationThatTheCardRefusesTakesDownItsOwnRegionOnly) {
  const auto other = NewRegion();
  const auto third = NewRegion();
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  RemoteToken good;
  PostBehindAWrite([&] {
    good = near_.Post(FastRegister(1, other, {pages_.page(0)}));
    near_.Post(FastRegister(2, region_, {pages_.page(1)}, kAllRights, backing));
    near_.Post(FastRegister(3, third, {pages_.page(2)}, kAllRights, backing));
    module_->RefuseNext(1);
  });
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(near_.initiated()[1], (Outcome{1, kFast, kOk}));
  EXPECT_EQ(near_.initiated()[2], (Outcome{2, kFast, NtStatus::kInternalError}));
  EXPECT_EQ(near_.initiated()[3], (Outcome{3, kFast, kCancelled}));
  EXPECT_TRUE(InForce(good));
  EXPECT_EQ(backing.use_count(), 1);
  // The domain remains usable, and so does the region, with other keys.
  Side again(near_);
  ASSERT_TRUE(again.ConnectTo(again).ok());
  const RemoteToken token = again.Post(FastRegister(4, region_, {pages_.page(1)}));
  EXPECT_EQ(again.initiated(), (Outcomes{{4, kFast, kOk}}));
  EXPECT_TRUE(InForce(token));
}

TEST_F(KernelFastRegionTest, AnInvalidationThatFailsEndsTheRegistrationAnotherWay) {
  std::shared_ptr<int> backing = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = backing;
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(0)}, kAllRights, std::move(backing)));
  module_->FailNext("Submit", ENETDOWN);
  near_.Post(Invalidate(2, region_));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_FALSE(InForce(token));
  EXPECT_TRUE(weak.expired());
}

TEST_F(KernelFastRegionTest, WhatTheModuleDoesNotEndStaysHeldUntilTheDomainEnds) {
  std::shared_ptr<int> backing = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = backing;
  {
    auto adapter = *daemon_.provider().OpenAdapter("fake0");
    auto domain = *adapter->CreateProtectionDomain();
    auto queue = *adapter->CreateCompletionQueue(4);
    auto region = *domain->CreateFastRegion(4, true);
    RecordingListener listener;
    const auto pair = *domain->CreateQueuePair(kRoomyLimits, *queue, *queue, listener);
    ASSERT_TRUE(pair->Connect(pair->address()).ok());
    ASSERT_TRUE(pair->Enqueue(FastRegister(1, region, {pages_.page(0)}, kAllRights, std::move(backing))).ok());
    pair->Kick();
    ASSERT_TRUE(listener.WaitFor(WorkQueue::kInitiator, 1));
    module_->FailNext("Submit", EIO);
    module_->FailNext("DestroyRegion", EBUSY);
    region->Retire();
    ASSERT_THAT(module_->in_force(), SizeIs(1));
    EXPECT_FALSE(weak.expired()) << "a peer still reaches the page";
    pair->Shutdown();
  }
  EXPECT_TRUE(weak.expired());
  EXPECT_THAT(module_->in_force(), IsEmpty());
}

TEST_F(KernelFastRegionTest, AFlushedRegistrationNeverHappens) {
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  near_.Post(Write(1));
  near_.Post(FastRegister(2, region_, {pages_.page(0)}, kAllRights, backing));
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kFast, kCancelled}));
  EXPECT_THAT(module_->chains(), IsEmpty());
  EXPECT_EQ(backing.use_count(), 1);
}

// rxe reports it by bit 2 of the flags instead of IBV_WC_WITH_INV.
TEST_F(KernelFastRegionTest, AForeignPeersInvalidationReachesTheOwner) {
  Side other(near_);
  // An address without an origin is that of a program that is no daemon.
  std::string address = far_.pair().address();
  ASSERT_TRUE(other.pair().Connect(address.substr(0, address.rfind('.'))).ok());
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  other.Post(Receive(2));
  ASSERT_TRUE(fake_.Arrive(other.number(), {.wc_flags = 1U << 2, .invalidate = token.value}));
  ASSERT_TRUE(other.Received(1));
  EXPECT_EQ(other.received(), (Outcomes{{2, OperationType::kReceiveAndInvalidate, kOk}}));
  EXPECT_FALSE(region_->registered());
}

TEST_F(KernelFastRegionTest, ADaemonThatIsAskedInvalidates) {
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  near_.Post(Receive(2));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(token.value)));
  ASSERT_TRUE(near_.Received(1));
  EXPECT_EQ(near_.received(), (Outcomes{{2, OperationType::kReceiveAndInvalidate, kOk}}));
  EXPECT_FALSE(InForce(token));
}

TEST_F(KernelFastRegionTest, NothingIsLeftOfADomain) {
  const size_t domains = module_->domains();
  {
    Side side(daemon_);
    ASSERT_TRUE(side.ConnectTo(side).ok());
    const auto region = *side.domain().CreateFastRegion(4, true);
    EXPECT_EQ(module_->domains(), domains + 1);
    side.Post(FastRegister(1, region, {pages_.page(0)}));
    EXPECT_TRUE(InForce(region->remote_token()));
  }
  EXPECT_EQ(module_->domains(), domains) << "the kernel would not free the protection domain";
  EXPECT_THAT(module_->in_force(), IsEmpty());
}

TEST_F(KernelFastRegionTest, ARefusalOfTheModuleIsARefusalOfTheRequest) {
  const struct {
    int error;
    ErrorReason reason;
  } kRows[] = {{EDQUOT, ErrorReason::DEVICE_OUT_OF_RESOURCES},
               {EFAULT, ErrorReason::MEMORY_NOT_PINNABLE},
               {ENODEV, ErrorReason::DEVICE_REMOVED}};
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  for (const auto& row : kRows) {
    module_->FailNext("Map", row.error);
    EXPECT_TRUE(near_.Refuses(FastRegister(1, region_, {pages_.page(0)}, kAllRights, backing), row.reason));
  }
  EXPECT_EQ(backing.use_count(), 1);
  module_->FailNext("CreateRegion", EDQUOT);
  EXPECT_TRUE(FailedWith(near_.domain().CreateFastRegion(4, true).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
}

TEST_F(KernelFastRegionTest, ACardThatIsGoneWhenItIsToRegisterIsReported) {
  module_->FailNext("Submit", ENODEV);
  near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kCancelled}}));
  EXPECT_TRUE(near_.listener().WaitForPeerGone()) << "a card that is gone has no peers";
}

class SmallKernelListsTest : public KernelTest {
 protected:
  SmallKernelListsTest() : KernelTest(8) {}
};

TEST_F(SmallKernelListsTest, ARegionOfMorePagesThanARequestTakesIsARegistrationOfTheCard) {
  Side side(daemon_);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  SharedPages pages(2);
  const auto small = *side.domain().CreateFastRegion(8, true);
  const auto large = *side.domain().CreateFastRegion(9, true);
  side.Post(FastRegister(1, small, {pages.page(0)}));
  side.Post(FastRegister(2, large, {pages.page(1)}));
  EXPECT_EQ(side.initiated(), (Outcomes{{1, kFast, kOk}, {2, kFast, kOk}}));
  EXPECT_EQ(daemon_.provider().fast_registrations().kernel, 1u);
  EXPECT_EQ(daemon_.provider().fast_registrations().direct, 1u);
}

}  // namespace
}  // namespace rnicd::provider
