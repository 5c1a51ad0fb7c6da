// Which fast registrations and binds are windows of the card, and what they reach.

#include "tests/networkdirect_model/model_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr AccessRights kLocalOnly{.local_write = true, .read_sink = true};

class FastRegistrations : public OnModel {
 protected:
  explicit FastRegistrations(const NetworkDirectOptions& options = {}) : OnModel(options) {
    ConnectAndWait(near_, far_);
    std::span<std::byte> run = pages_.bytes();
    mapping_ = near_.adapter().AddMapping({&run, 1});
  }
  std::shared_ptr<DeviceFastRegion> NewRegion() { return *near_.domain().CreateFastRegion(16, true); }
  FastRegistrationCounts counts() { return provider().fast_registrations(); }

  ProviderSide near_{provider(), kModelAdapter};
  ProviderSide far_{provider(), kModelAdapter};
  SharedPages pages_{8};
  std::unique_ptr<DeviceMapping> mapping_;
};

class WithoutWindows : public FastRegistrations {
 protected:
  WithoutWindows() : FastRegistrations({.fast_engine = NdFastEngine::kRegistration}) {}
};

TEST_F(FastRegistrations, PagesThatLieTogetherInAMappingAreAWindow) {
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(2), pages_.page(3)}));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated().back().status, kOk);
  EXPECT_EQ(counts().windowed, 1u);
  EXPECT_EQ(control().BindsExecuted(), 1u);
  Fill(far_.pages().page(0), 6);
  EXPECT_EQ(StatusOf(far_, Write(2, {far_.Entry(0, 4096)}, token, 2048)), kOk);
  EXPECT_TRUE(Holds(pages_.page(2).subspan(2048), 6));
  EXPECT_TRUE(Holds(pages_.page(3).subspan(0, 2048), 6));
  EXPECT_TRUE(Holds(pages_.page(3).subspan(2048), 0));
  EXPECT_EQ(StatusOf(near_, Invalidate(3, region)), kOk);
  EXPECT_EQ(control().InvalidatesExecuted(), 1u);
  EXPECT_EQ(control().Count().bound_windows, 0u);
}

TEST_F(FastRegistrations, ASecondWindowRegistersNothing) {
  const auto region = NewRegion();
  ASSERT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(0)})), kOk);
  const uint64_t regions = control().Count().regions;
  for (uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(StatusOf(near_, Invalidate(2, region)), kOk);
    ASSERT_EQ(StatusOf(near_, FastRegister(3, region, {pages_.page(round % 8)})), kOk);
  }
  EXPECT_EQ(control().Count().regions, regions);
  EXPECT_EQ(counts().windowed, 21u);
}

TEST_F(FastRegistrations, ThePeerLeavesNoWindow) {
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(1)}));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(StatusOf(far_, Write(2, {far_.Entry(0, 8)}, token, 4092)), kViolation);
  EXPECT_TRUE(Holds(pages_.page(2), 0));
}

TEST_F(FastRegistrations, TheCardChecksTheRightsOfAWindow) {
  const auto region = NewRegion();
  const RemoteToken token =
      near_.Post(FastRegister(1, region, {pages_.page(1)}, {.local_write = true, .remote_read = true}));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(StatusOf(far_, Read(2, {far_.Entry(0, 8)}, token)), kOk);
  EXPECT_EQ(StatusOf(far_, Write(3, {far_.Entry(0, 8)}, token)), kViolation);
}

TEST_F(FastRegistrations, WithoutRemoteRightsTheCardIsNotAsked) {
  const auto region = NewRegion();
  ASSERT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(1)}, kLocalOnly)), kOk);
  EXPECT_EQ(control().BindsExecuted(), 0u);
  EXPECT_EQ(StatusOf(near_, Read(2, {{.address = {kSideBase}, .length = 16, .token = region->local_token()}},
                                 far_.region()->remote_token())),
            kOk);
  EXPECT_EQ(StatusOf(near_, Invalidate(3, region)), kOk);
}

TEST_F(FastRegistrations, WhatNoWindowCanExpressIsRegistered) {
  const auto scattered = NewRegion();
  EXPECT_EQ(StatusOf(near_, FastRegister(1, scattered, {pages_.page(3), pages_.page(1)})), kOk);
  SharedPages unmapped(1);
  const auto elsewhere = NewRegion();
  EXPECT_EQ(StatusOf(near_, FastRegister(2, elsewhere, {unmapped.page(0)})), kOk);
  EXPECT_EQ(counts().direct, 2u);
  EXPECT_EQ(control().BindsExecuted(), 0u);
  Fill(far_.pages().page(0), 9);
  EXPECT_EQ(StatusOf(far_, Write(3, {far_.Entry(0, 4096)}, scattered->remote_token(), 2048)), kOk);
  EXPECT_TRUE(Holds(pages_.page(3).subspan(2048), 9));
  EXPECT_TRUE(Holds(pages_.page(1).subspan(0, 2048), 9));
  elsewhere->Retire();
}

TEST_F(FastRegistrations, AQueuePairThatIsNotConnectedRegisters) {
  ProviderSide alone(near_);
  ProviderSide later(far_);
  ASSERT_TRUE(alone.ConnectTo(later).ok());
  const auto region = NewRegion();
  EXPECT_EQ(StatusOf(alone, FastRegister(1, region, {pages_.page(0)})), kOk) << "it need not wait for its peer";
  EXPECT_EQ(counts().direct, 1u);
}

// A gap: NDK's fast registrations work through every queue pair of their domain.
TEST_F(FastRegistrations, AWindowWorksThroughItsQueuePairAndEndsWithIt) {
  ProviderSide near_too(near_);
  ProviderSide far_too(far_);
  ConnectAndWait(near_too, far_too);
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(1)}));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(StatusOf(far_too, Write(2, {far_too.Entry(0, 8)}, token)), kViolation);
  EXPECT_TRUE(region->registered());
  near_.Shutdown();
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(control().Count().bound_windows, 0u);
}

TEST_F(FastRegistrations, AMappingThatEndsIsDeregistered) {
  const uint64_t regions = control().Count().regions;
  const auto region = NewRegion();
  ASSERT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(1)})), kOk);
  EXPECT_EQ(control().Count().regions, regions + 1);
  region->Retire();
  mapping_.reset();
  EXPECT_EQ(control().Count().regions, regions);
}

TEST_F(FastRegistrations, BytesOfTheDaemonInAMappingAreNotRegisteredAgain) {
  ASSERT_EQ(StatusOf(near_, FastRegister(1, NewRegion(), {pages_.page(0)}, kLocalOnly)), kOk);
  control().FailNext("IND2MemoryRegion::Register", kNdInsufficientResources, 0, 1);
  Fill(pages_.page(5), 3);
  EXPECT_EQ(StatusOf(near_, Write(2, {{.host = pages_.page(5), .length = 4096}}, far_.region()->remote_token())), kOk);
  EXPECT_TRUE(Holds(far_.pages().page(0), 3));
}

TEST_F(FastRegistrations, ABindIsAWindowOfTheRegionThatItKeeps) {
  const std::shared_ptr<DeviceMemoryWindow> window = *near_.domain().CreateMemoryWindow();
  ASSERT_EQ(StatusOf(near_, Bind(1, window, near_.region(), 4096)), kOk);
  EXPECT_EQ(control().BindsExecuted(), 1u);
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  Fill(far_.pages().page(0), 2);
  EXPECT_EQ(StatusOf(far_, Write(2, {far_.Entry(0, 4096)}, window->remote_token(), 4096)), kOk);
  EXPECT_TRUE(Holds(near_.pages().page(1), 2));
  EXPECT_EQ(StatusOf(far_, Write(3, {far_.Entry(0, 8)}, window->remote_token(), 0)), kViolation) << "before the window";
  window->Retire();
  EXPECT_EQ(control().Count().bound_windows, 0u);
}

TEST_F(FastRegistrations, ASendMayInvalidateAtThePeer) {
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(1)}));
  ASSERT_TRUE(near_.Initiated(2));
  near_.Post(Receive(10));
  EXPECT_EQ(StatusOf(far_, Send(2, {}, {.invalidate = token})), kOk);
  ASSERT_TRUE(near_.Received(1));
  const Completion received = near_.listener().completions(WorkQueue::kReceive)[0];
  EXPECT_EQ(received.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(received.invalidated, token);
  EXPECT_FALSE(region->registered());
  near_.Post(Receive(11));
  EXPECT_EQ(StatusOf(far_, Send(3, {}, {.invalidate = token})), NtStatus::kRemoteResources) << "it is over";
}

TEST_F(WithoutWindows, EverythingIsRegistered) {
  const auto region = NewRegion();
  EXPECT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(1)})), kOk);
  EXPECT_EQ(control().BindsExecuted(), 0u);
  EXPECT_EQ(counts().direct, 1u);
}

}  // namespace
}  // namespace rnicd::provider
