// Binds and windows, with registrations and with the card's own windows; and the choice of the start-up probe.

#include "provider/verbs/fast/verbs_window.h"

#include "provider/verbs/fake/verbs_fixture_test.h"
#include "provider/verbs/window_probe.h"

namespace rnicd::provider {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Steps for the tests of one engine; common claims are tested for both.
class WindowSteps : public VerbsTest {
 protected:
  explicit WindowSteps(const VerbsOptions& options) : VerbsTest(options) { Connect(near_, far_); }

  std::shared_ptr<DeviceMemoryWindow> NewWindow() { return *near_.domain().CreateMemoryWindow(); }
  // Completes the requests posted to the card.
  void Work() {
    fake_.CompleteAll(near_.number());
    Settle();
  }

  Side near_{daemon_};
  Side far_{daemon_};
  // A second connection between the same domains.
  Side other_{near_};
  Side peer_{far_};
  SharedPages pages_{8};
};

// --- by registrations ---

class VerbsWindowTest : public WindowSteps {
 protected:
  VerbsWindowTest() : WindowSteps(QuietOptions()) {}
};

TEST_F(VerbsWindowTest, ItShowsAPartOfItsRegionUnderATokenAndRightsOfItsOwn) {
  const auto window = NewWindow();
  const RemoteToken token = near_.Post(Bind(1, window, near_.region(), kPage, 100));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, kOk}}));
  EXPECT_EQ(window->remote_token(), token);
  EXPECT_NE(token, near_.region()->remote_token());
  const FakeRegion made = fake_.regions().back();
  EXPECT_EQ(made.rkey, token.value);
  EXPECT_EQ(made.iova, Side::kBase + kPage);
  EXPECT_EQ(made.address, near_.pages().page(1).data());
  EXPECT_EQ(made.length, 100u);
  EXPECT_EQ(made.access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
}

TEST_F(VerbsWindowTest, ABindOfADeregisteredRegionIsRefusedWhenItIsPosted) {
  ASSERT_TRUE(near_.region()->Deregister().ok());
  EXPECT_TRUE(near_.Refuses(Bind(1, NewWindow(), near_.region()), ErrorReason::REGION_NOT_REGISTERED));
}

// --- by windows of the card ---

VerbsOptions WithCardWindows() {
  VerbsOptions options = QuietOptions();
  options.fast_engine = FastEngine::kWindow;
  options.allow_unbounded_windows = true;
  return options;
}

class VerbsCardWindowTest : public WindowSteps {
 protected:
  VerbsCardWindowTest() : WindowSteps(WithCardWindows()) {}

  std::shared_ptr<DeviceFastRegion> NewRegion() { return *near_.domain().CreateFastRegion(16, true); }
};

TEST_F(VerbsCardWindowTest, ABindIsPostedInItsTurnWithTheAnnouncedKey) {
  const auto window = NewWindow();
  near_.Post(Write(1));
  const RemoteToken token = near_.Post(Bind(2, window, near_.region(), kPage, 100));
  near_.Post(Write(3, {}, token));
  EXPECT_EQ(window->remote_token(), token);
  EXPECT_THAT(near_.posted(), SizeIs(1));
  ASSERT_TRUE(fake_.Complete(near_.number()));
  Settle();
  ASSERT_THAT(near_.posted(), SizeIs(1)) << "the bind, and nothing behind it";
  const PostedSend bind = near_.posted()[0];
  EXPECT_EQ(bind.opcode, IBV_WR_BIND_MW);
  EXPECT_EQ(bind.bind_rkey, token.value);
  EXPECT_EQ(bind.bind.addr, Side::kBase + kPage);
  EXPECT_EQ(bind.bind.length, 100u);
  EXPECT_EQ(bind.bind.mw_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(fake_.BoundTo(bind.mw), nullptr);
  ASSERT_TRUE(fake_.Complete(near_.number()));
  Settle();
  EXPECT_EQ(fake_.BoundTo(bind.mw), bind.bind.mr);
  ASSERT_THAT(near_.posted(), SizeIs(1)) << "the write behind the bind";
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kBound, kOk}));
}

TEST_F(VerbsCardWindowTest, AFastRegistrationIsAWindowOverMemoryWithNoOtherDoor) {
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(3), pages_.page(1)}));
  EXPECT_EQ(fake_.regions().back().access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  EXPECT_EQ(fake_.regions().back().rkey, 0u);
  EXPECT_FALSE(region->registered());
  Work();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kOk}}));
  EXPECT_TRUE(region->registered());
  EXPECT_EQ(region->remote_token(), token);
  EXPECT_EQ(daemon_.provider().fast_registrations().windowed, 1u);
  EXPECT_EQ(daemon_.provider().fast_registrations().composed, 0u);
  EXPECT_EQ(fake_.live().mws, 1u);
  near_.Post(Invalidate(2, region));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated()[1], (Outcome{2, kInvalidated, kOk}));
  EXPECT_EQ(fake_.live().mws, 0u);
}

TEST_F(VerbsCardWindowTest, ARegistrationForNobodyElseNeedsNoWindow) {
  const auto region = NewRegion();
  near_.Post(FastRegister(1, region, {pages_.page(0)}, {.local_write = true}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kOk}}));
  EXPECT_EQ(fake_.live().mws, 0u);
  near_.Post(Write(2, {{.address = {Side::kBase}, .length = 8, .token = region->local_token()}}, {7}));
  EXPECT_THAT(near_.posted(), SizeIs(1));
}

TEST_F(VerbsCardWindowTest, WhatIsBoundIsUnboundBeforeItsQueuePairGoes) {
  const auto region = NewRegion();
  const auto window = NewWindow();
  near_.Post(FastRegister(1, region, {pages_.page(0)}));
  Work();
  near_.Post(Bind(2, window, near_.region()));
  Work();
  ASSERT_EQ(fake_.live().mws, 2u);
  near_.Shutdown();
  EXPECT_EQ(fake_.live().mws, 0u);
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(near_.region()->Deregister().ok());
  EXPECT_THAT(fake_.violations(), IsEmpty());
}

TEST_F(VerbsCardWindowTest, ASecondRegistrationOrBindFailsInItsTurnAndLeavesNothing) {
  const auto region = NewRegion();
  near_.Post(FastRegister(1, region, {pages_.page(0)}));
  near_.Post(FastRegister(2, region, {pages_.page(1)}));
  EXPECT_EQ(fake_.live().mws, 2u);
  Work();
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kOk}, {2, kFast, kRefused}}));
  EXPECT_EQ(fake_.live().mws, 1u);
  const auto window = NewWindow();
  Connect(other_, peer_);
  other_.Post(Bind(1, window, near_.region()));
  other_.Post(Bind(2, window, near_.region()));
  fake_.CompleteAll(other_.number());
  ASSERT_TRUE(other_.Initiated(2));
  EXPECT_EQ(other_.initiated(), (Outcomes{{1, kBound, kOk}, {2, kBound, kRefused}}));
  EXPECT_EQ(fake_.live().mws, 2u);
}

TEST_F(VerbsCardWindowTest, AFlushedBindLeavesNoWindow) {
  const auto region = NewRegion();
  const auto window = NewWindow();
  near_.Post(FastRegister(1, region, {pages_.page(0)}));
  near_.Post(Bind(2, window, near_.region()));
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kCancelled}, {2, kBound, kCancelled}}));
  EXPECT_EQ(fake_.live().mws, 0u);
  EXPECT_TRUE(near_.region()->Deregister().ok());
  EXPECT_FALSE(region->registered());
}

TEST_F(VerbsCardWindowTest, ABindThatTheCardRefusesLeavesNoWindow) {
  const auto window = NewWindow();
  const std::shared_ptr<int> backing = std::make_shared<int>(1);
  near_.Post(Bind(1, window, near_.region(), 0, kPage, backing));
  ASSERT_TRUE(fake_.Complete(near_.number(), IBV_WC_MW_BIND_ERR));
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, kRefused}}));
  EXPECT_EQ(fake_.live().mws, 0u);
  EXPECT_EQ(backing.use_count(), 1);
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

TEST_F(VerbsCardWindowTest, ABindThatCannotBePostedLeavesNoWindow) {
  const auto window = NewWindow();
  fake_.FailNext("PostSend", ENOMEM);
  near_.Post(Bind(1, window, near_.region()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, NtStatus::kInternalError}}));
  EXPECT_EQ(fake_.live().mws, 0u);
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

TEST_F(VerbsCardWindowTest, ARefusedBindLeavesNoWindow) {
  const auto window = NewWindow();
  fake_.FailNext("AllocMw", ENOMEM);
  EXPECT_TRUE(near_.Refuses(Bind(1, window, near_.region()), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  const size_t regions = fake_.regions().size();
  fake_.FailNext("AllocMw", ENOMEM);
  EXPECT_TRUE(near_.Refuses(FastRegister(2, NewRegion(), {pages_.page(0)}), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

TEST_F(VerbsCardWindowTest, AWindowRetiredWhileItsBindIsUnderWayIsNotBound) {
  const auto window = NewWindow();
  near_.Post(Bind(1, window, near_.region()));
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS)) << "the card is at it";
  window->Retire();
  Work();
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, kRefused}}));
  EXPECT_EQ(fake_.live().mws, 0u);
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

// --- which of the two ---

class WindowProbeTest : public ::testing::Test {
 protected:
  static VerbsOptions With(FastEngine engine) {
    VerbsOptions options = QuietOptions();
    options.fast_engine = engine;
    return options;
  }
  // The card completes posted requests: a write past the end of a window with `beyond`, any other with `within`.
  void WorkWithWindows(ibv_wc_status beyond, ibv_wc_status within = IBV_WC_SUCCESS) {
    fake_.on_send = [this, beyond, within](const PostedSend& send) {
      if (send.opcode == IBV_WR_BIND_MW) {
        bound_ = send;
        fake_.Complete(send.qp_num);
        return;
      }
      const bool inside =
          send.remote_addr >= bound_.bind.addr && send.remote_addr < bound_.bind.addr + bound_.bind.length;
      fake_.Complete(send.qp_num, inside ? within : beyond);
    };
  }
  absl::StatusOr<std::unique_ptr<VerbsProvider>> Create(const VerbsOptions& options) {
    return VerbsProvider::Create(options, random_, fake_, IgnoreAdapterEvents);
  }
  // Makes one fast registration and returns the provider's counts by method.
  FastRegistrationCounts RegisterOnce(VerbsProvider& provider) {
    auto adapter = *provider.OpenAdapter("fake0");
    auto domain = *adapter->CreateProtectionDomain();
    auto queue = *adapter->CreateCompletionQueue(4);
    const auto region = *domain->CreateFastRegion(4, true);
    RecordingListener listener;
    const auto pair = *domain->CreateQueuePair(kRoomyLimits, *queue, *queue, listener);
    EXPECT_TRUE(pair->Connect(pair->address()).ok());
    EXPECT_TRUE(pair->Enqueue(FastRegister(1, region, {pages_.page(0)})).ok());
    pair->Kick();
    EXPECT_TRUE(listener.WaitFor(WorkQueue::kInitiator, 1));
    pair->Shutdown();
    return provider.fast_registrations();
  }

  FakeVerbs fake_;
  KernelRandom random_;
  SharedPages pages_{1};
  PostedSend bound_;
};

// A window works through one queue pair, a fast registration through every one of its domain.
TEST_F(WindowProbeTest, WindowsThatCheckTheirBoundsCarryFastRegistrationsOnDemandOnly) {
  for (const FastEngine engine : {FastEngine::kAuto, FastEngine::kWindow}) {
    WorkWithWindows(IBV_WC_REM_ACCESS_ERR);
    auto provider = Create(With(engine));
    ASSERT_TRUE(provider.ok()) << provider.status();
    EXPECT_EQ(fake_.live(), (FakeLive{.contexts = 1, .channels = 1})) << "the probe leaves nothing";
    const FastRegistrationCounts counts = RegisterOnce(**provider);
    EXPECT_EQ(counts.windowed, engine == FastEngine::kWindow ? 1u : 0u);
    EXPECT_EQ(counts.direct, engine == FastEngine::kAuto ? 1u : 0u);
  }
  EXPECT_THAT(fake_.violations(), IsEmpty());
}

TEST_F(WindowProbeTest, WindowsThatDoNotCheckTheirBoundsAreNotUsedUnlessTheyMay) {
  WorkWithWindows(IBV_WC_SUCCESS);
  {
    auto provider = Create(With(FastEngine::kAuto));
    ASSERT_TRUE(provider.ok());
    EXPECT_EQ(RegisterOnce(**provider).direct, 1u);
  }
  const absl::Status refused = Create(With(FastEngine::kWindow)).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fake0: its memory windows do not check bounds"));
  EXPECT_EQ(fake_.live(), FakeLive{});
  VerbsOptions unbounded = With(FastEngine::kWindow);
  unbounded.allow_unbounded_windows = true;
  auto provider = Create(unbounded);
  ASSERT_TRUE(provider.ok());
  EXPECT_EQ(RegisterOnce(**provider).windowed, 1u);
}

TEST_F(WindowProbeTest, WindowsThatDoNotWorkAreNotUsed) {
  const std::function<void()> kFaults[] = {
      [&] { WorkWithWindows(IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR); },
      [&] { fake_.FailNext("AllocMw", EOPNOTSUPP); },
      [&] { fake_.FailNext("AllocPd", ENOMEM, 1, 1); },
      [&] { fake_.FailNext("PostSend", EINVAL); },
      [&] { fake_.FailNext("PollCq", EIO); },
      [&] { fake_.FailNext("ModifyQp", EINVAL, 1, 4); },
  };
  for (const auto& fault : kFaults) {
    WorkWithWindows(IBV_WC_REM_ACCESS_ERR);
    fault();
    {
      auto provider = Create(With(FastEngine::kAuto));
      ASSERT_TRUE(provider.ok()) << provider.status();
      EXPECT_EQ(fake_.live(), (FakeLive{.contexts = 1, .channels = 1}));
      EXPECT_EQ(RegisterOnce(**provider).direct, 1u);
    }
    WorkWithWindows(IBV_WC_REM_ACCESS_ERR);
    fault();
    const absl::Status refused = Create(With(FastEngine::kWindow)).status();
    EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
    EXPECT_EQ(fake_.live(), FakeLive{});
  }
  EXPECT_THAT(fake_.violations(), IsEmpty());
}

TEST_F(WindowProbeTest, ACardWithoutWindowsIsNotEvenAsked) {
  FakeDevice device;
  device.attributes.device_cap_flags = 0;
  FakeVerbs plain({device});
  auto provider = VerbsProvider::Create(With(FastEngine::kAuto), random_, plain, IgnoreAdapterEvents);
  ASSERT_TRUE(provider.ok());
  EXPECT_EQ(plain.calls("AllocMw"), 0u);
}

}  // namespace
}  // namespace rnicd::provider
