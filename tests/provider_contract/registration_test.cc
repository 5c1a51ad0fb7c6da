// Fast registrations and windows, as requests: what their tokens reach and when, and when their backing is released.

#include <set>

#include "base/os.h"
#include "tests/provider_contract/contract_fixture.h"

namespace rnicd::provider {
namespace {

// A request that fails ends its connection, so there is a second one between the same domains.
class RegistrationContract : public ProviderContract {
 protected:
  RegistrationContract() {
    Connect(near_, far_);
    Connect(near_too_, far_too_);
  }

  std::shared_ptr<DeviceFastRegion> NewRegion() {
    auto region = near_.domain().CreateFastRegion(16, true);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  std::shared_ptr<DeviceMemoryWindow> NewWindow() {
    auto window = near_.domain().CreateMemoryWindow();
    EXPECT_TRUE(window.ok()) << window.status();
    return *std::move(window);
  }
  // Posts the request, waits until it is complete, and answers its status.
  static NtStatus StatusOf(ProviderSide& side, WorkRequest request) {
    const size_t count = side.initiated().size() + 1;
    side.Post(std::move(request));
    EXPECT_TRUE(side.Initiated(count));
    return side.initiated().size() == count ? side.initiated().back().status : NtStatus::kPending;
  }
  static ScatterGatherEntry EntryOf(const DeviceFastRegion& region, uint32_t length) {
    return {.address = {kSideBase}, .length = length, .token = region.local_token()};
  }

  ProviderSide near_too_{near_};
  ProviderSide far_too_{far_};
  SharedPages pages_{2};
};

TEST_P(RegistrationContract, ACardWithoutDmabufsSaysSoAndRegistersNothing) {
  const size_t before = card_->registrations();
  const auto buffer = SystemOs().CreateMemoryFile(kNdkPageBytes, kNdkPageBytes);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const absl::Status refused =
      near_.domain().RegisterDmabuf({.base = {kSideBase}, .length = kNdkPageBytes, .file = buffer->get()}).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_EQ(card_->registrations(), before);
}

INSTANTIATE_TEST_SUITE_P(Provider, RegistrationContract, ::testing::ValuesIn(CardKinds()), NameOf);

// --- fast registrations ---

TEST_P(RegistrationContract, NothingIsReachedBeforeItsFirstRegistration) {
  const auto region = NewRegion();
  EXPECT_NE(region->local_token(), LocalToken{});
  EXPECT_NE(region->remote_token(), RemoteToken{});
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(StatusOf(near_, Write(1, {EntryOf(*region, 1)}, far_.region()->remote_token())), kViolation);
  EXPECT_EQ(StatusOf(far_too_, Write(1, {far_too_.Entry(0, 1)}, region->remote_token())), kViolation);
}

TEST_P(RegistrationContract, ARegistrationIsReachedFromItsExecutionToItsInvalidation) {
  const auto region = NewRegion();
  const RemoteToken before = region->remote_token();
  near_.Post(Send(1));
  const RemoteToken token = near_.Post(FastRegister(2, region, {pages_.page(0)}));
  EXPECT_NE(token, before);
  EXPECT_EQ(region->remote_token(), token) << "it is known when the request is accepted";
  card_->Settle();
  EXPECT_FALSE(region->registered()) << "it is behind a send that waits";
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kFast, kOk}}));
  EXPECT_TRUE(region->registered());
  EXPECT_EQ(region->remote_token(), token);
  EXPECT_EQ(StatusOf(far_, Write(3, {far_.Entry(0, 8)}, token)), kOk);
  EXPECT_EQ(StatusOf(near_too_, Write(4, {EntryOf(*region, 8)}, far_.region()->remote_token())), kOk);
  EXPECT_EQ(StatusOf(near_, Invalidate(5, region)), kOk);
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(StatusOf(far_, Write(6, {far_.Entry(0, 8)}, token)), kViolation);
  EXPECT_EQ(StatusOf(near_too_, Write(7, {EntryOf(*region, 8)}, far_.region()->remote_token())), kViolation);
}

TEST_P(RegistrationContract, TheLocalTokenStaysAndTheRemoteOneChangesWithEachRegistration) {
  const auto region = NewRegion();
  const LocalToken local = region->local_token();
  std::set<uint32_t> seen;
  for (uint64_t round = 0; round < 128; ++round) {
    const RemoteToken token = near_.Post(FastRegister(round, region, {pages_.page(0)}));
    EXPECT_TRUE(seen.insert(token.value).second) << "a stale token came back to life in round " << round;
    ASSERT_TRUE(near_.Initiated(2 * round + 1));
    EXPECT_EQ(region->local_token(), local);
    ASSERT_EQ(StatusOf(near_, Invalidate(round, region)), kOk) << round;
  }
  EXPECT_EQ(near_.initiated().size(), 256u);
}

TEST_P(RegistrationContract, WhatIsNotRegisteredCannotBeInvalidated) {
  const auto region = NewRegion();
  EXPECT_EQ(StatusOf(near_, Invalidate(1, region)), kInvalid) << "it never was";
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kInvalidated, kInvalid}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_EQ(StatusOf(near_too_, FastRegister(2, region, {pages_.page(0)})), kOk);
  EXPECT_EQ(StatusOf(near_too_, Invalidate(3, region)), kOk);
  EXPECT_EQ(StatusOf(near_too_, Invalidate(4, region)), kInvalid) << "it is not any more";
  EXPECT_EQ(near_too_.state(), QueuePairState::kError);
}

TEST_P(RegistrationContract, TheBackingLivesAsLongAsTheRegistration) {
  const auto region = NewRegion();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  std::atomic<bool> in_time = false;
  near_.listener().on_completion = [&](const Completion& completion) {
    if (completion.type == kInvalidated) {
      in_time = backing.expired();
    }
  };
  EXPECT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(0)}, kAllRights, std::move(owned))), kOk);
  EXPECT_FALSE(backing.expired());
  EXPECT_EQ(StatusOf(near_, Invalidate(2, region)), kOk);
  EXPECT_TRUE(in_time) << "released before the invalidation is reported";
}

TEST_P(RegistrationContract, RetireEndsTheRegistrationForGood) {
  const auto region = NewRegion();
  const size_t registrations = card_->registrations();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(0)}, kAllRights, std::move(owned)));
  ASSERT_TRUE(near_.Initiated(1));
  near_.Post(Send(2));
  near_.Post(FastRegister(3, region, {pages_.page(0)}));
  region->Retire();
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(StatusOf(far_too_, Write(4, {far_too_.Entry(0, 1)}, token)), kViolation);
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(3));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kOk}, {2, kSent, kOk}, {3, kFast, kInvalid}}));
  ProviderSide sibling(near_);
  ASSERT_TRUE(sibling.ConnectTo(sibling).ok());
  EXPECT_EQ(StatusOf(sibling, Invalidate(5, region)), kInvalid);
  region->Retire();
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(card_->registrations(), registrations + 1) << "that of the sibling's memory";
}

TEST_P(RegistrationContract, AFlushedRegistrationOrBindNeverHappens) {
  const auto region = NewRegion();
  const auto window = NewWindow();
  const size_t registrations = card_->registrations();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  near_.Post(Send(1));
  const RemoteToken token = near_.Post(FastRegister(2, region, {pages_.page(0)}, kAllRights, owned));
  near_.Post(Bind(3, window, near_.region(), 0, kNdkPageBytes, std::move(owned)));
  near_.Post(Send(4));
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(
      near_.initiated(),
      (Outcomes{{1, kSent, kCancelled}, {2, kFast, kCancelled}, {3, kBound, kCancelled}, {4, kSent, kCancelled}}));
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(card_->registrations(), registrations);
  EXPECT_EQ(StatusOf(far_too_, Write(5, {far_too_.Entry(0, 1)}, token)), kViolation);
  EXPECT_TRUE(near_.region()->Deregister().ok()) << "no window is bound to it";
}

// --- reads that invalidate ---

TEST_P(RegistrationContract, AReadMayInvalidateTheRegistrationOfItsFirstSink) {
  for (const uint32_t length : {16u, 0u}) {
    const auto region = NewRegion();
    near_.Post(Silent(FastRegister(1, region, {pages_.page(0)})));
    ASSERT_TRUE(HoldsSoon([&region] { return region->registered(); }));
    EXPECT_EQ(StatusOf(near_, ReadAndInvalidate(2, {EntryOf(*region, length), near_.Entry(0, 4)},
                                                far_.region()->remote_token())),
              kOk)
        << length;
    EXPECT_EQ(near_.initiated().back(), (Outcome{2, kReadOp, kOk}));
    EXPECT_FALSE(region->registered()) << length;
  }
}

TEST_P(RegistrationContract, ARegistrationThatIsForLongerCannotBeInvalidatedByARead) {
  EXPECT_EQ(StatusOf(near_, ReadAndInvalidate(1, {near_.Entry(0, 16)}, far_.region()->remote_token())), kInvalid);
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kInvalid}}));
  EXPECT_EQ(StatusOf(near_too_, Write(2, {near_.Entry(0, 16)}, far_.region()->remote_token())), kOk)
      << "its token works on";
}

// --- windows ---

TEST_P(RegistrationContract, ADeregisteredRegionCannotBeBound) {
  const auto window = NewWindow();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  near_.Post(Send(1));
  near_.Post(Bind(2, window, near_.region(), 0, kNdkPageBytes, std::move(owned)));
  ASSERT_TRUE(near_.region()->Deregister().ok()) << "it is not bound yet";
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kBound, kInvalid}}));
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(StatusOf(near_too_, Invalidate(3, window)), kInvalid) << "it is not bound";
}

TEST_P(RegistrationContract, ABoundWindowKeepsItsRegionAndCannotBeBoundAgain) {
  const auto window = NewWindow();
  EXPECT_EQ(StatusOf(near_, Bind(1, window, near_.region())), kOk);
  const size_t registrations = card_->registrations();
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  EXPECT_EQ(StatusOf(far_, Write(2, {far_.Entry(0, 1)}, window->remote_token())), kOk) << "a refusal changes nothing";
  EXPECT_EQ(StatusOf(near_too_, Write(3, {near_.Entry(0, 1)}, far_.region()->remote_token())), kOk) << "nor here";
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  EXPECT_EQ(StatusOf(near_, Bind(4, window, near_.region(), 0, kNdkPageBytes, std::move(owned))), kInvalid);
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, kOk}, {4, kBound, kInvalid}}));
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(card_->registrations(), registrations);
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS)) << "the first one stands";
  window->Retire();
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

TEST_P(RegistrationContract, TheBackingLivesAsLongAsTheBinding) {
  const auto window = NewWindow();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  EXPECT_EQ(StatusOf(near_, Bind(1, window, near_.region(), 0, kNdkPageBytes, std::move(owned))), kOk);
  EXPECT_FALSE(backing.expired());
  EXPECT_EQ(StatusOf(near_, Invalidate(2, window)), kOk);
  EXPECT_TRUE(backing.expired());
}

}  // namespace
}  // namespace rnicd::provider
