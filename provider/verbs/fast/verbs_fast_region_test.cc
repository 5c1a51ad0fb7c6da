// Fast registrations on a card that has none: what the card is asked to do for them, and what it may refuse.

#include "provider/verbs/fast/verbs_fast_region.h"

#include <arpa/inet.h>

#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

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

TEST_F(VerbsFastRegionTest, ARegistrationThatTheCardRefusesLeavesNothingAndChangesNoToken) {
  const RemoteToken before = region_->remote_token();
  const size_t regions = fake_.regions().size();
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  fake_.FailNext("RegMr", EFAULT);
  EXPECT_TRUE(
      near_.Refuses(FastRegister(1, region_, {pages_.page(0)}, kAllRights, backing), ErrorReason::MEMORY_NOT_PINNABLE));
  EXPECT_EQ(region_->remote_token(), before);
  EXPECT_EQ(backing.use_count(), 1);
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
}

// The card continues to serve the memory, so no caller may get success.
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
