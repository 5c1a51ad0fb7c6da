// Fast registrations as requests: the time of token and execution, and the objects they leave behind.

#include "provider/verbs/verbs_fast_region.h"

#include <arpa/inet.h>

#include "provider/verbs/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class VerbsFastRegionTest : public VerbsTest {
 protected:
  VerbsFastRegionTest() { Connect(near_, far_); }

  std::shared_ptr<DeviceFastRegion> NewRegion(Side& side) {
    auto region = side.domain().CreateFastRegion(16, true);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  // The card's region with this key.
  std::optional<FakeRegion> Registered(uint32_t key) const {
    for (const FakeRegion& region : fake_.regions()) {
      if (region.rkey == key && key != 0) {
        return region;
      }
    }
    return std::nullopt;
  }

  Side near_{daemon_};
  Side far_{daemon_};
  SharedPages pages_{8};
  const std::shared_ptr<DeviceFastRegion> region_ = NewRegion(near_);
};

TEST_F(VerbsFastRegionTest, TheTokenIsKnownWhenTheRequestIsAcceptedAndStays) {
  const LocalToken local = region_->local_token();
  near_.Post(Write(1));
  const RemoteToken token = near_.Post(FastRegister(2, region_, {pages_.page(0)}));
  EXPECT_EQ(region_->remote_token(), token);
  EXPECT_FALSE(region_->registered()) << "a request before it is not complete";
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kFast, kOk}));
  EXPECT_TRUE(region_->registered());
  EXPECT_EQ(region_->remote_token(), token);
  EXPECT_EQ(region_->local_token(), local);
  const std::optional<FakeRegion> made = Registered(token.value);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->iova, Side::kBase);
  EXPECT_EQ(made->length, kPage);
}

TEST_F(VerbsFastRegionTest, ItWaitsForWhatIsBeforeItAndHoldsBackWhatIsBehindIt) {
  near_.Post(Write(1));
  near_.Post(Read(2));
  near_.Post(FastRegister(3, region_, {pages_.page(0)}));
  near_.Post(Send(4, {{.address = {Side::kBase}, .length = 8, .token = region_->local_token()}}));
  near_.Post(Invalidate(5, region_));
  near_.Post(Write(6));
  EXPECT_THAT(near_.posted(), SizeIs(2));
  ASSERT_TRUE(fake_.Complete(near_.number()));
  Settle();
  EXPECT_FALSE(region_->registered()) << "the read is under way";
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(Eventually([this] { return region_->registered() && near_.posted().size() == 1; }))
      << "the send, under the card's own key";
  EXPECT_EQ(near_.posted()[0].entries[0].lkey, Registered(region_->remote_token().value)->lkey);
  ASSERT_TRUE(fake_.Complete(near_.number()));
  EXPECT_TRUE(Eventually([this] { return !region_->registered() && near_.posted().size() == 1; })) << "the last write";
}

TEST_F(VerbsFastRegionTest, ScatteredPagesAreOneRegistration) {
  const uint64_t before = fake_.regions().size();
  near_.Post(FastRegister(1, region_, {pages_.page(6), pages_.page(1), pages_.page(2), pages_.page(1)}));
  ASSERT_THAT(fake_.regions(), SizeIs(before + 1));
  EXPECT_EQ(fake_.regions().back().length, 4 * kPage);
  EXPECT_EQ(fake_.regions().back().iova, Side::kBase);
  EXPECT_EQ(daemon_.provider().fast_registrations().composed, 1u);
  near_.Post(Invalidate(2, region_));
  EXPECT_THAT(fake_.regions(), SizeIs(before));
  near_.Post(FastRegister(3, region_, {pages_.page(6), pages_.page(7)}));
  EXPECT_EQ(daemon_.provider().fast_registrations().direct, 1u);
  EXPECT_EQ(daemon_.provider().fast_registrations().composed, 1u);
  EXPECT_EQ(daemon_.provider().fast_registrations().windowed, 0u);
}

TEST_F(VerbsFastRegionTest, ASecondRegistrationFailsInItsTurnAndLeavesNothing) {
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  const size_t regions = fake_.regions().size();
  near_.Post(Write(2));
  near_.Post(FastRegister(3, region_, {pages_.page(1)}, kAllRights, backing));
  near_.Post(Write(4));
  EXPECT_THAT(near_.initiated(), SizeIs(1));
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(near_.initiated()[2], (Outcome{3, kFast, kRefused}));
  EXPECT_EQ(near_.initiated()[3], (Outcome{4, kWritten, kCancelled}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
  EXPECT_EQ(backing.use_count(), 1);
  EXPECT_TRUE(region_->registered()) << "the first one stands";
}

TEST_F(VerbsFastRegionTest, ARefusedRequestLeavesNothingAndChangesNoToken) {
  const RemoteToken before = region_->remote_token();
  const size_t regions = fake_.regions().size();
  const uint64_t live = daemon_.provider().live_regions();
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  fake_.FailNext("RegMr", EFAULT);
  EXPECT_TRUE(
      near_.Refuses(FastRegister(1, region_, {pages_.page(0)}, kAllRights, backing), ErrorReason::MEMORY_NOT_PINNABLE));
  Side small(daemon_, {.initiator_depth = 1});
  ASSERT_TRUE(small.ConnectTo(far_).ok());
  EXPECT_EQ(daemon_.provider().live_regions(), live + 1) << "of the other side's memory";
  const auto other = NewRegion(small);
  small.Post(Write(1));
  EXPECT_TRUE(small.Refuses(FastRegister(2, other, {pages_.page(0)}, kAllRights, backing), ErrorReason::QUEUE_FULL));
  near_.pair().Flush();
  EXPECT_TRUE(
      near_.Refuses(FastRegister(3, region_, {pages_.page(0)}, kAllRights, backing), ErrorReason::QP_NOT_CONNECTED));
  EXPECT_EQ(region_->remote_token(), before);
  EXPECT_EQ(backing.use_count(), 1);
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 3)) << "the other side's domain, memory and region";
}

TEST_F(VerbsFastRegionTest, AFlushedRegistrationNeverHappens) {
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  const size_t regions = fake_.regions().size();
  near_.Post(Write(1));
  near_.Post(FastRegister(2, region_, {pages_.page(0), pages_.page(2)}, kAllRights, backing));
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 1)) << "its token must be known";
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kFast, kCancelled}));
  EXPECT_FALSE(region_->registered());
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
  EXPECT_EQ(backing.use_count(), 1);
}

// The card goes on serving the memory, so nobody may be told that it does not.
TEST_F(VerbsFastRegionTest, AnInvalidationThatTheCardRefusesIsNoSuccess) {
  std::shared_ptr<int> backing = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = backing;
  near_.Post(FastRegister(1, region_, {pages_.page(0)}, kAllRights, std::move(backing)));
  const uint32_t token = region_->remote_token().value;
  fake_.FailNext("DeregMr", EBUSY);
  near_.Post(Invalidate(2, region_));
  ASSERT_THAT(near_.initiated(), SizeIs(2));
  const bool served = Registered(token).has_value();
  EXPECT_EQ(near_.initiated()[1].status == kOk, !served);
  EXPECT_EQ(weak.expired(), !served);
}

TEST_F(VerbsFastRegionTest, MorePagesThanTheCardMayHaveAreRefused) {
  EXPECT_TRUE(FailedWith(near_.domain().CreateFastRegion(32769, true).status(), ErrorReason::PAGE_COUNT_UNSUPPORTED));
  EXPECT_TRUE(near_.domain().CreateFastRegion(32768, false).ok());
}

TEST_F(VerbsFastRegionTest, TheDestructorGivesBackItsKeys) {
  const size_t regions = fake_.regions().size();
  {
    const auto region = NewRegion(near_);
    near_.Post(FastRegister(1, region, {pages_.page(0)}));
    EXPECT_THAT(fake_.regions(), SizeIs(regions + 2));
  }
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
}

// --- invalidated by others ---

TEST_F(VerbsFastRegionTest, WhatFollowsAReadThatInvalidatesWaitsForTheInvalidation) {
  near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  near_.Post(ReadAndInvalidate(
      2, {{.address = {Side::kBase}, .length = 16, .token = region_->local_token()}, near_.Entry(0, 4)}));
  near_.Post(Write(3));
  Settle();
  EXPECT_THAT(near_.posted(), SizeIs(1)) << "the read";
  EXPECT_TRUE(region_->registered());
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_FALSE(region_->registered());
  ASSERT_TRUE(Eventually([this] { return near_.posted().size() == 1; })) << "the write";
}

TEST_F(VerbsFastRegionTest, ASendOfADaemonMayInvalidateARegistration) {
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  near_.Post(Receive(10));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(token.value)));
  ASSERT_TRUE(near_.Received(1));
  const Completion received = near_.listener().completions(WorkQueue::kReceive)[0];
  EXPECT_EQ(received.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(received.invalidated, token);
  EXPECT_EQ(received.status, kOk);
  EXPECT_TRUE(received.solicited);
  EXPECT_FALSE(region_->registered());
  EXPECT_EQ(Registered(token.value), std::nullopt);
}

TEST_F(VerbsFastRegionTest, ASendThatInvalidatesWhatItCannotEndsTheConnection) {
  near_.Post(Receive(10));
  near_.Post(Receive(11));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(near_.region()->remote_token().value)));
  ASSERT_TRUE(near_.Received(2));
  EXPECT_EQ(near_.received(),
            (Outcomes{{10, OperationType::kReceive, kRefused}, {11, OperationType::kReceive, kCancelled}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_THAT(fake_.regions(), ::testing::Not(IsEmpty()));
}

// A card may assign no remote key without a remote right; the token must be unique all the same.
TEST_F(VerbsFastRegionTest, WhatIsForNobodyElseHasATokenThatNoOtherHas) {
  const auto second = NewRegion(near_);
  const RemoteToken token = near_.Post(FastRegister(1, region_, {pages_.page(0)}, {.local_write = true}));
  const RemoteToken other = near_.Post(FastRegister(2, second, {pages_.page(1)}, {.local_write = true}));
  EXPECT_NE(token, other);
  EXPECT_NE(token, RemoteToken{0});
  near_.Post(Receive(10));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(0)));
  ASSERT_TRUE(near_.Received(1));
  EXPECT_EQ(near_.received()[0].status, kRefused);
  EXPECT_TRUE(region_->registered());
  EXPECT_TRUE(second->registered());
}

TEST_F(VerbsFastRegionTest, ATokenOfAnotherDomainInvalidatesNothing) {
  const auto elsewhere = NewRegion(far_);
  const RemoteToken token = far_.Post(FastRegister(1, elsewhere, {pages_.page(0)}));
  near_.Post(Receive(10));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(token.value)));
  ASSERT_TRUE(near_.Received(1));
  EXPECT_EQ(near_.received()[0].status, kRefused);
  EXPECT_TRUE(elsewhere->registered());
}

// --- receives that name it ---

TEST_F(VerbsFastRegionTest, AReceiveThatNamesItUsesTheRegistrationInForce) {
  near_.Post(FastRegister(1, region_, {pages_.page(0)}));
  near_.Post(Receive(10, {{.address = {Side::kBase}, .length = 8, .token = region_->local_token()}}));
  ASSERT_TRUE(fake_.Receive(near_.number(), 8));
  near_.Post(Receive(11, {{.address = {Side::kBase}, .length = 8, .token = region_->local_token()}}));
  near_.Post(Invalidate(2, region_));
  ASSERT_TRUE(near_.Initiated(2));
  ASSERT_TRUE(fake_.Receive(near_.number(), 8));
  ASSERT_TRUE(near_.Received(2));
  EXPECT_EQ(near_.received()[0].status, kOk);
  EXPECT_NE(near_.received()[1].status, kOk) << "its key died with the registration";
}

}  // namespace
}  // namespace rnicd::provider
