#include "provider/verbs/verbs_provider.h"

#include <set>

#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerbsProviderTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<VerbsProvider>> Create(VerbsApi& api, std::vector<std::string> devices = {}) {
    VerbsOptions options = QuietOptions();
    options.devices = std::move(devices);
    return VerbsProvider::Create(options, random_, api, IgnoreAdapterEvents);
  }

  KernelRandom random_;
};

// --- discovery ---

TEST_F(VerbsProviderTest, OwnsEveryCardUnlessItIsToldWhich) {
  FakeVerbs fake({Card("fake0"), Card("fake1"), Card("fake2")});
  auto all = Create(fake);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->name(), "verbs");
  EXPECT_THAT(Names(**all), ElementsAre("fake0", "fake1", "fake2"));
  auto some = Create(fake, {"fake2", "fake0"});
  ASSERT_TRUE(some.ok());
  EXPECT_THAT(Names(**some), ElementsAre("fake2", "fake0")) << "in the order of the list";
  EXPECT_TRUE(FailedWith((*some)->OpenAdapter("fake1").status(), ErrorReason::ADAPTER_NOT_FOUND));
}

TEST_F(VerbsProviderTest, ACardSaysWhereItHangsAndWhatItCan) {
  FakeDevice device = Card("fake0");
  device.numa_node = 1;
  device.attributes.max_qp_wr = 100;
  device.max_inline_bytes = 300;
  FakeVerbs fake({device});
  auto provider = Create(fake);
  ASSERT_TRUE(provider.ok());
  const AdapterDescription adapter = (*provider)->ListAdapters().at(0);
  EXPECT_EQ(adapter.numa_node, 1);
  EXPECT_EQ(adapter.info.max_initiator_queue_depth, 99u);
  EXPECT_EQ(adapter.info.max_inline_data_size, 256u) << "the largest of the usual sizes that it takes";
  auto opened = (*provider)->OpenAdapter("fake0");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->info().max_inline_data_size, 256u);
  EXPECT_EQ((*opened)->info().vendor_id, device.attributes.vendor_id);
}

// A queue pair can be created with every limit that info() promises.
TEST_F(VerbsProviderTest, AQueuePairAtTheLimitsCanBeMade) {
  FakeDevice narrow = Card("fake0");
  narrow.attributes.max_cqe = 100;
  narrow.attributes.max_sge = 4;
  narrow.attributes.max_sge_rd = 30;
  FakeVerbs fake({narrow});
  auto provider = Create(fake);
  ASSERT_TRUE(provider.ok());
  auto adapter = *(*provider)->OpenAdapter("fake0");
  auto domain = *adapter->CreateProtectionDomain();
  auto queue = *adapter->CreateCompletionQueue(adapter->info().max_cq_depth);
  RecordingListener listener;
  const NdkAdapterInfo& info = adapter->info();
  const auto pair = domain->CreateQueuePair({.receive_depth = info.max_receive_queue_depth,
                                             .initiator_depth = info.max_initiator_queue_depth,
                                             .receive_entries = info.max_receive_request_sge,
                                             .initiator_entries = info.max_initiator_request_sge,
                                             .inline_bytes = info.max_inline_data_size},
                                            *queue, *queue, listener);
  EXPECT_TRUE(pair.ok()) << pair.status();
}

TEST_F(VerbsProviderTest, WithoutACardItSaysWhy) {
  FakeVerbs none(std::vector<FakeDevice>{});
  const absl::Status nothing = Create(none).status();
  EXPECT_EQ(nothing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nothing.message()), HasSubstr("none is there; see that its driver is loaded"));
}

TEST_F(VerbsProviderTest, WithoutAUsableCardItNamesEachOneAndWhy) {
  FakeVerbs fake({Card("fake0"), Card("fake1"), Card("fake2"), Card("fake3")});
  fake.FailNext("Open", EMFILE, 1);
  fake.FailNext("QueryPort", EINVAL, 1);
  fake.FailNext("CreateQp", EOPNOTSUPP, UINT64_MAX);
  const absl::Status refused = Create(fake, {"fake0", "fake1", "fake2", "fake9"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("no RDMA card can be used: "), HasSubstr("fake0: "), HasSubstr("ibv_open_device: EMFILE"),
                    HasSubstr("fake1: "), HasSubstr("ibv_query_port: EINVAL"), HasSubstr("fake2: "),
                    HasSubstr("ibv_create_qp: EOPNOTSUPP"), HasSubstr("fake3: not in"), HasSubstr("fake9: not there")));
  EXPECT_EQ(fake.live(), FakeLive{});
}

TEST_F(VerbsProviderTest, ACardThatCannotDoReliableConnectionsIsLeftOut) {
  FakeVerbs fake({Card("fake0"), Card("fake1")});
  // The probe of the first card tries all 8 sizes of inline data.
  fake.FailNext("CreateQp", EOPNOTSUPP, 8);
  auto provider = Create(fake);
  ASSERT_TRUE(provider.ok());
  EXPECT_THAT(Names(**provider), ElementsAre("fake1"));
}

TEST_F(VerbsProviderTest, ACardThatCannotBeOpenedAgainIsLeftOut) {
  FakeVerbs fake({Card("fake0"), Card("fake1")});
  for (const char* const call : {"Open", "CreateChannel"}) {
    fake.FailNext(call, EMFILE, 1, /*skip=*/call == std::string("Open") ? 1 : 0);
    auto provider = Create(fake);
    ASSERT_TRUE(provider.ok()) << call << ": " << provider.status();
    EXPECT_THAT(Names(**provider), ElementsAre("fake1"));
  }
}

TEST_F(VerbsProviderTest, PortsOfACardWithSeveralAreNumbered) {
  FakeDevice device = Card("fake0");
  device.attributes.phys_port_cnt = 2;
  FakeVerbs fake({device});
  auto provider = Create(fake);
  ASSERT_TRUE(provider.ok());
  EXPECT_THAT(Names(**provider), ElementsAre("fake0:1")) << "of two, of which one answers";
  EXPECT_TRUE((*provider)->OpenAdapter("fake0:1").ok());
  EXPECT_TRUE(FailedWith((*provider)->OpenAdapter("fake0").status(), ErrorReason::ADAPTER_NOT_FOUND));
}

// --- openings ---

TEST_F(VerbsProviderTest, EverySessionHasAnOpeningOfItsOwnAndAllAreClosed) {
  FakeVerbs fake;
  {
    Daemon daemon(fake);
    EXPECT_EQ(fake.live(), (FakeLive{.contexts = 1, .channels = 1})) << "the one that hears what the card says";
    Side first(daemon);
    Side second(daemon);
    EXPECT_EQ(fake.live().contexts, 3u);
    EXPECT_EQ(fake.live().pds, 2u);
    Connect(first, second);
    first.Post(Write(1));
    first.Post(Receive(10));
  }
  EXPECT_EQ(fake.live(), FakeLive{});
  EXPECT_THAT(fake.violations(), IsEmpty());
}

TEST_F(VerbsProviderTest, AnOpeningThatFailsLeavesNothing) {
  FakeVerbs fake;
  Daemon daemon(fake);
  const FakeLive before = fake.live();
  for (const char* const call : {"Open", "CreateChannel"}) {
    fake.FailNext(call, EMFILE);
    const absl::Status refused = daemon.provider().OpenAdapter("fake0").status();
    EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_OUT_OF_RESOURCES)) << refused;
    EXPECT_EQ(fake.live(), before);
  }
  auto adapter = *daemon.provider().OpenAdapter("fake0");
  const FakeLive opened = fake.live();
  for (const char* const call : {"AllocPd", "RegMr"}) {
    fake.FailNext(call, ENOMEM);
    EXPECT_TRUE(FailedWith(adapter->CreateProtectionDomain().status(), ErrorReason::DEVICE_OUT_OF_RESOURCES)) << call;
    EXPECT_EQ(fake.live(), opened);
  }
}

TEST_F(VerbsProviderTest, CountsTheRegionsOfAllItsCards) {
  FakeVerbs fake({Card("fake0"), Card("fake1")});
  Daemon daemon(fake);
  Side first(daemon, kRoomyLimits, "fake0");
  Side second(daemon, kRoomyLimits, "fake1");
  EXPECT_EQ(daemon.provider().live_regions(), 2u);
  EXPECT_TRUE(first.region()->Deregister().ok());
  EXPECT_EQ(daemon.provider().live_regions(), 1u);
}

// --- asynchronous events of a card ---

TEST_F(VerbsProviderTest, WhatAPortSaysIsReportedOnceHoweverManySessionsThereAre) {
  FakeVerbs fake({Card("fake0"), Card("fake1")});
  Daemon daemon(fake);
  Side first(daemon);
  Side second(daemon);
  fake.RaiseAsync(IBV_EVENT_PORT_ERR, 1, "fake0");
  fake.RaiseAsync(IBV_EVENT_LID_CHANGE, 1, "fake0");
  fake.RaiseAsync(IBV_EVENT_PORT_ACTIVE, 2, "fake0");
  fake.RaiseAsync(IBV_EVENT_PORT_ACTIVE, 1, "fake0");
  fake.RaiseAsync(IBV_EVENT_GID_CHANGE, 1, "fake0");
  ASSERT_TRUE(Eventually([&] { return daemon.events().size() >= 3; }));
  EXPECT_THAT(daemon.events(), ElementsAre("fake0 port down", "fake0 port up", "fake0 address changed"));
  EXPECT_EQ(first.state(), QueuePairState::kInit);
  fake.RaiseAsync(IBV_EVENT_PORT_ERR, 1, "fake1");
  ASSERT_TRUE(Eventually([&] { return daemon.events().size() == 4; }));
  EXPECT_EQ(daemon.events()[3], "fake1 port down");
}

TEST_F(VerbsProviderTest, ACardThatCannotBeUsedIsReportedAsLeftOut) {
  FakeVerbs fake({Card("fake0"), Card("fake1")});
  VerbsOptions options = QuietOptions();
  options.devices = {"fake0"};
  Daemon daemon(fake, options);
  EXPECT_THAT(daemon.events(), ElementsAre("fake1: not in --verbs_devices left out"));
}

TEST_F(VerbsProviderTest, EveryKindOfEventHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const AdapterEventKind kind : kAllAdapterEventKinds) {
    EXPECT_TRUE(names.insert(AdapterEventName(kind)).second) << AdapterEventName(kind);
  }
}

// --- a removed card ---

class VerbsRemovalTest : public ::testing::Test {
 protected:
  ~VerbsRemovalTest() override { EXPECT_THAT(fake_.violations(), IsEmpty()); }

  FakeVerbs fake_{{Card("fake0"), Card("fake1")}};
};

// Every object created on a removed card, and the errors of its calls.
void ExpectGone(Daemon& daemon, Side& near, Side& far) {
  ASSERT_TRUE(near.Initiated(3) && near.Received(1) && far.listener().WaitForPeerGone());
  for (const Outcome& outcome : near.initiated()) {
    EXPECT_EQ(outcome.status, kCancelled) << outcome;
  }
  EXPECT_EQ(near.received()[0].status, kCancelled);
  EXPECT_TRUE(Eventually([&] { return far.state() == QueuePairState::kError; }));
  EXPECT_EQ(near.state(), QueuePairState::kError);
  EXPECT_TRUE(near.listener().WaitForPeerGone());
  EXPECT_THAT(daemon.events(), ElementsAre("fake0 removed"));
  EXPECT_THAT(Names(daemon.provider()), ElementsAre("fake1"));
  EXPECT_TRUE(FailedWith(daemon.provider().OpenAdapter("fake0").status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(FailedWith(near.Register(kAllRights).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(FailedWith(near.adapter().CreateCompletionQueue(4).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(FailedWith(near.domain().CreateFastRegion(4, true).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(near.region()->Deregister().ok()) << "a card that is gone has let go";
}

TEST_F(VerbsRemovalTest, ARemovedCardEndsAllThatWasMadeOnIt) {
  for (const int destroy_error : {0, EIO}) {
    FakeVerbs fake({Card("fake0"), Card("fake1")});
    {
      Daemon daemon(fake);
      Side near(daemon);
      Side far(daemon);
      Side elsewhere(daemon, kRoomyLimits, "fake1");
      Connect(near, far);
      ASSERT_TRUE(elsewhere.ConnectTo(elsewhere).ok());
      const auto region = *near.domain().CreateFastRegion(4, true);
      near.Post(Receive(10));
      near.Post(Write(1));
      near.Post(Silent(Write(2)));
      near.Post(FastRegister(3, region, {near.pages().page(0)}));
      fake.RemoveDevice("fake0", destroy_error);
      ExpectGone(daemon, near, far);
      region->Retire();
      EXPECT_EQ(elsewhere.state(), QueuePairState::kReadyToSend);
    }
    EXPECT_EQ(fake.live(), FakeLive{});
    EXPECT_THAT(fake.violations(), IsEmpty());
  }
}

// A software card is removed without an event: an address changes, and then queries of the port fail.
TEST_F(VerbsRemovalTest, ACardThatStopsToAnswerIsRemoved) {
  Daemon daemon(fake_);
  Side near(daemon);
  Side far(daemon);
  Connect(near, far);
  near.Post(Receive(10));
  near.Post(Write(1));
  near.Post(Silent(Write(2)));
  near.Post(Write(3));
  fake_.FailNext("QueryPort", ENODEV, UINT64_MAX);
  fake_.RaiseAsync(IBV_EVENT_GID_CHANGE, 1, "fake0");
  ExpectGone(daemon, near, far);
}

TEST_F(VerbsRemovalTest, QueuePairsThatNeverConnectedEndToo) {
  Daemon daemon(fake_);
  Side side(daemon);
  side.Post(Receive(10));
  fake_.RemoveDevice("fake0");
  ASSERT_TRUE(side.Received(1));
  EXPECT_EQ(side.received()[0].status, kCancelled);
  EXPECT_EQ(side.state(), QueuePairState::kError);
  EXPECT_EQ(side.peer_gone(), 0) << "it had none";
}

// A descriptor that hung up stays readable.
TEST_F(VerbsRemovalTest, TheDescriptorsOfARemovedCardKeepNobodyBusy) {
  Daemon daemon(fake_, ProbingOptions());
  Side gone(daemon);
  Side clock(daemon, kRoomyLimits, "fake1");
  ASSERT_TRUE(gone.ConnectTo(gone).ok());
  ASSERT_TRUE(clock.ConnectTo(clock).ok());
  gone.Post(Write(1));
  fake_.RemoveDevice("fake0");
  ASSERT_TRUE(gone.Initiated(1));
  const uint64_t looks = fake_.calls("QueryQpState");
  const uint64_t before = fake_.calls("NextCqEvent") + fake_.calls("NextAsyncEvent");
  ASSERT_TRUE(Eventually([&] { return fake_.calls("QueryQpState") >= looks + 3; }));
  EXPECT_LT(fake_.calls("NextCqEvent") + fake_.calls("NextAsyncEvent"), before + 50);
}

}  // namespace
}  // namespace rnicd::provider
