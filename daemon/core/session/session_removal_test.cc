// How a session leaves cards that were removed.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "daemon/core/connection/connection_fixture_test.h"

namespace rnicd::core {
namespace {

class Removal : public ::testing::Test {
 protected:
  // Waits for what the reapers have to do for the owners, who are of one tenant.
  void Settle() {
    for (const uint64_t of : {uint64_t{0}, owner_.session->tenant().number()}) {
      Awaited<bool> reached;
      world_.reapers->PostFor(of, [&] { reached.Set(true); });
      EXPECT_TRUE(reached.Get().has_value());
    }
  }
  void Unplug() {
    world_.plan.Unplug("soft0");
    world_.registry.OnAdapterRemoved();
    Settle();
  }
  void EndGrace() {
    world_.clock.Advance(world_.node.limits.removal_grace);
    world_.alarms.RunDue();
    Settle();
  }
  // The soft network's thread may be the last that knows a connector.
  void ExpectHeld(const std::string& expected) {
    EXPECT_TRUE(Eventually([&] { return world_.Held() == expected; })) << world_.Held();
  }
  // How many events of which kind wait.
  static std::map<size_t, int> EventsOf(const Owner& owner) {
    std::map<size_t, int> counts;
    for (auto event = owner.session->events().Pop(); event.has_value(); event = owner.session->events().Pop()) {
      ++counts[event->body.index()];
    }
    return counts;
  }
  template <typename Body>
  static constexpr size_t kIndex = EventBody(Body{}).index();

  World world_;
  ConnectionOwner owner_{world_, 1};
  ConnectionOwner peer_{world_, 2};
};

TEST_F(Removal, SessionHearsThatItsAdapterIsRemoved) {
  world_.registry.OnAdapterRemoved();
  Settle();
  EXPECT_TRUE(owner_.HasNoEvent()) << "it was another card";
  Unplug();
  world_.registry.OnAdapterRemoved();
  Settle();
  EXPECT_EQ(owner_.NextEvent<AdapterRemoved>().adapter, owner_.adapter);
  EXPECT_TRUE(owner_.HasNoEvent());
  EXPECT_EQ(world_.observer.counts().decisions.back().what, "adapter.removed");
}

TEST_F(Removal, ARemovedAdapterMakesNothingNew) {
  const MemoryObjectId memory = owner_.Memory(1);
  const MemoryRegionId region = owner_.Region(owner_.domain);
  world_.plan.Unplug("soft0");
  const auto is_removed = FailsWith(ErrorReason::DEVICE_REMOVED);
  EXPECT_THAT(owner_.session->Begin()->domains().Create(owner_.adapter).status(), is_removed);
  EXPECT_THAT(owner_.session->Begin()->queues().Create(owner_.adapter, 1, 0).status(), is_removed);
  EXPECT_THAT(owner_.session->Begin()->pairs().Create(owner_.PairArguments()).status(), is_removed);
  EXPECT_THAT(owner_.session->Begin()->listeners().Create(owner_.adapter, 0).status(), is_removed);
  EXPECT_THAT(owner_.session->Begin()->connectors().Create(owner_.adapter).status(), is_removed);
  EXPECT_THAT(owner_.session->Begin()->endpoints().Create(owner_.adapter, {}).status(), is_removed);
  EXPECT_THAT(owner_.TryLam(memory, kPage).status(), is_removed);
  EXPECT_THAT(owner_.Register(region, memory, kPage).status(), is_removed);
}

TEST_F(Removal, QueuePairsOfARemovedAdapterAreFlushed) {
  const QueuePairId pair = owner_.Pair();
  const QueuePairId peer_pair = peer_.Pair();
  ConnectPairs(owner_, pair, peer_, peer_pair);
  owner_.MustPost(pair, {Receive()});
  const QueuePairId alone = owner_.Pair();
  Unplug();
  EXPECT_EQ(owner_.State(pair), QueuePairState::kError);
  EXPECT_EQ(owner_.State(alone), QueuePairState::kError);
  EXPECT_EQ(owner_.Statuses(), std::vector<NtStatus>{NtStatus::kCancelled});
  const std::map<size_t, int> once = {{kIndex<AdapterRemoved>, 1}, {kIndex<QpDisconnected>, 1}};
  EXPECT_EQ(EventsOf(owner_), once);
  EXPECT_EQ(EventsOf(peer_), once);
}

TEST_F(Removal, ConnectionsOfARemovedAdapterEnd) {
  peer_.Listen("array");
  const auto connected = owner_.StartConnect(owner_.To(peer_.listening_at, owner_.NewConnector(), owner_.Pair()));
  peer_.WaitRequest();
  Unplug();
  EXPECT_THAT(Result(connected), FailsWith(ErrorReason::DEVICE_REMOVED));
  EXPECT_FALSE(world_.addresses.Find("uid/uid=1000/array").has_value());
}

// One object of each kind, each with what can hold it open.
void TakeSomeOfEverything(ConnectionOwner& owner, ConnectionOwner& peer) {
  const QueuePairId pair = owner.Pair();
  ConnectPairs(owner, pair, peer, peer.Pair());
  const MemoryWindowId window = owner.Window();
  const MemoryRegionId region = owner.RegisteredRegion();
  const std::vector<uint64_t> pages = PagesOf(owner.Lam(owner.Memory(2), 2));
  owner.MustPost(pair, {Bind(region, window), FastRegister(owner.FastRegion(), pages), Receive()});
  EXPECT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kAny).ok());
  EXPECT_TRUE(owner.session->Begin()->endpoints().Create(owner.adapter, {}).ok());
  owner.Listen("disk");
  peer.Listen("array");
  owner.StartConnect(owner.To(peer.listening_at, owner.NewConnector(), owner.Pair()));
  peer.WaitRequest();
}

TEST_F(Removal, WhatTheClientKeepsIsClosedAfterTheGrace) {
  TakeSomeOfEverything(owner_, peer_);
  Unplug();
  EXPECT_TRUE(owner_.session->Begin()->queues().GetResults(owner_.queue, 100).ok()) << "in its own order";
  const auto polled = std::make_shared<Awaited<absl::Status>>();
  ASSERT_TRUE(owner_.session->Begin()
                  ->queues()
                  .Poll(owner_.queue, 1, kCqWaitMax,
                        [polled](const auto& outcome) {
                          polled->Set(outcome.status());
                          return true;
                        })
                  .ok());
  EndGrace();
  EXPECT_THAT(polled->Get().value_or(absl::OkStatus()), FailsWith(ErrorReason::DEVICE_REMOVED));
  EXPECT_THAT(owner_.session->Begin()->adapters().QueryInfo(owner_.adapter).status(),
              FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  ExpectHeld("sessions=2 memory_objects=2 memory_bytes=12288 ");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
  EXPECT_EQ(world_.alarms.count(), 0u);
  EXPECT_EQ(world_.observer.counts().revoked.at("adapter_removed"), 1u);
}

TEST_F(Removal, MemoryOfARemovedAdapterStays) {
  const MemoryObjectId memory = owner_.Memory(1);
  EXPECT_TRUE(owner_.Register(owner_.Region(owner_.domain), memory, kPage).ok());
  Unplug();
  EndGrace();
  world_.plan.Plug("soft0");
  EXPECT_TRUE(owner_.Register(owner_.Region(), memory, kPage).ok());
}

TEST_F(Removal, SameNameLaterIsAnotherAdapter) {
  Unplug();
  world_.plan.Plug("soft0");
  const AdapterId second = owner_.Adapter();
  EXPECT_NE(second, owner_.adapter);
  EndGrace();
  owner_.Domain(second);
  EXPECT_THAT(owner_.session->Begin()->domains().Create(owner_.adapter).status(),
              FailsWith(ErrorReason::OBJECT_NOT_FOUND));
}

// A client that has closed the adapter, and keeps what is in it.
TEST_F(Removal, AnAdapterThatIsClosingIsLetGoToo) {
  const auto closed = std::make_shared<Awaited<absl::Status>>();
  EXPECT_TRUE(owner_.session->Begin()
                  ->adapters()
                  .Close(owner_.adapter, [closed](const absl::Status& status) { closed->Set(status); })
                  .pending());
  Unplug();
  EndGrace();
  EXPECT_TRUE(closed->Get().value_or(absl::UnknownError("")).ok());
}

TEST_F(Removal, WhatARunningRequestHoldsIsLookedForAgain) {
  auto held = Kept<Adapter>::Of(owner_.session->Begin()->adapters().table().Find(owner_.adapter));
  ASSERT_TRUE(held.ok());
  Unplug();
  EndGrace();
  EXPECT_FALSE((*held)->closed());
  EXPECT_EQ(world_.alarms.count(), 1u);
  held->Release();
  EXPECT_TRUE((*held)->closed());
  EndGrace();
  EXPECT_EQ(world_.alarms.count(), 0u);
}

TEST_F(Removal, RemovalDuringSessionEnd) {
  TakeSomeOfEverything(owner_, peer_);
  {
    const auto guard = owner_.session->Begin();
    world_.registry.End(owner_.session, EndCause::kClosed, [](const Reclaimed& /*reclaimed*/) {});
    Unplug();
  }
  world_.End(owner_.session);
  world_.End(peer_.session);
  EndGrace();
  ExpectHeld("");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
}

}  // namespace
}  // namespace rnicd::core
