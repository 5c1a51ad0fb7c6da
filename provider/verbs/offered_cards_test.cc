// Cards that come and go while the daemon runs.
#include "provider/verbs/offered_cards.h"

#include <atomic>
#include <latch>

#include "provider/verbs/fake/verbs_fixture_test.h"
#include "provider/verbs/fake/verbs_hook_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class OfferedCardsTest : public ::testing::Test {
 protected:
  ~OfferedCardsTest() override { EXPECT_THAT(fake_.violations(), IsEmpty()); }

  void Add(const std::string& name) {
    fake_.AddDevice(Card(name));
    fake_.cards().Announce();
  }
  void Remove(const std::string& name) {
    fake_.cards().Remove(name);
    fake_.cards().Announce();
  }
  static void ExpectEvents(const Daemon& daemon, const std::vector<std::string>& events) {
    EXPECT_TRUE(Eventually([&] { return daemon.events().size() >= events.size(); }));
    EXPECT_EQ(daemon.events(), events);
  }
  // Returns when as many looks as `count` have begun after the first `before`.
  void AwaitLooks(uint64_t before, uint64_t count) {
    EXPECT_TRUE(Eventually([&] { return fake_.cards().lists() >= before + count; }));
  }

  FakeVerbs fake_{{Card("fake0")}};
};

TEST_F(OfferedCardsTest, CardThatAppearsIsOffered) {
  Daemon daemon(fake_);
  Add("fake1");
  ExpectEvents(daemon, {"fake1 added"});
  EXPECT_THAT(Names(daemon.provider()), ElementsAre("fake0", "fake1"));
  Side side(daemon, kRoomyLimits, "fake1");
  EXPECT_TRUE(side.ConnectTo(side).ok());
}

TEST_F(OfferedCardsTest, RemovedCardIsLetGo) {
  Daemon daemon(fake_);
  {
    Side side(daemon);
    ASSERT_TRUE(side.ConnectTo(side).ok());
    EXPECT_FALSE(side.adapter().removed());
    Remove("fake0");
    ExpectEvents(daemon, {"fake0 removed"});
    EXPECT_TRUE(side.adapter().removed());
    EXPECT_THAT(Names(daemon.provider()), IsEmpty());
    EXPECT_TRUE(FailedWith(daemon.provider().OpenAdapter("fake0").status(), ErrorReason::ADAPTER_NOT_FOUND));
    EXPECT_TRUE(FailedWith(side.Register(kAllRights).status(), ErrorReason::DEVICE_REMOVED));
    EXPECT_TRUE(Eventually([&] { return side.state() == QueuePairState::kError; }));
    EXPECT_TRUE(Eventually([&] { return fake_.live().contexts == 1; })) << "only the owner's is open";
    EXPECT_EQ(daemon.provider().live_regions(), 1u);
  }
  EXPECT_EQ(daemon.provider().live_regions(), 0u);
  EXPECT_TRUE(Eventually([&] { return fake_.live() == FakeLive{}; })) << "the loop may still be flushing";
}

TEST_F(OfferedCardsTest, SameNameLaterIsANewAdapter) {
  Daemon daemon(fake_);
  const auto old = *daemon.provider().OpenAdapter("fake0");
  fake_.cards().Remove("fake0");
  Add("fake0");
  ExpectEvents(daemon, {"fake0 removed", "fake0 added"});
  EXPECT_TRUE(old->removed());
  EXPECT_TRUE(FailedWith(old->CreateProtectionDomain().status(), ErrorReason::DEVICE_REMOVED));
  Side side(daemon);
  EXPECT_FALSE(side.adapter().removed());
  EXPECT_TRUE(side.ConnectTo(side).ok());
}

TEST_F(OfferedCardsTest, LostEventsAreFoundByLooking) {
  VerbsOptions options = QuietOptions();
  options.look_interval = std::chrono::milliseconds(0);
  Daemon daemon(fake_, options);
  fake_.AddDevice(Card("fake1"));
  ExpectEvents(daemon, {"fake1 added"});
  fake_.cards().Remove("fake1");
  ExpectEvents(daemon, {"fake1 added", "fake1 removed"});
}

TEST_F(OfferedCardsTest, UnwantedCardStaysOut) {
  VerbsOptions options = QuietOptions();
  options.devices = {"fake0", "fake2"};
  Daemon daemon(fake_, options);
  Add("fake1");
  ExpectEvents(daemon, {"fake2: not there left out", "fake1: not in --verbs_devices left out"});
  Add("fake2");
  ExpectEvents(daemon, {"fake2: not there left out", "fake1: not in --verbs_devices left out", "fake2 added"});
  EXPECT_THAT(Names(daemon.provider()), ElementsAre("fake0", "fake2"));
}

// As when clients have used up the descriptors of the daemon.
TEST_F(OfferedCardsTest, CardThatIsOnlyMissingInTheListStays) {
  Daemon daemon(fake_);
  const uint64_t before = fake_.cards().lists();
  fake_.cards().FailNextList();
  fake_.cards().Announce();
  AwaitLooks(before, 1);
  Add("fake1");
  ExpectEvents(daemon, {"fake1 added"});
}

TEST_F(OfferedCardsTest, CardIsTriedWhenItHasAnAddress) {
  Daemon daemon(fake_);
  FakeDevice card = Card("fake1");
  card.gids.clear();
  const uint64_t before = fake_.cards().lists();
  fake_.AddDevice(card);
  fake_.cards().Announce();
  AwaitLooks(before, 3);
  EXPECT_THAT(daemon.events(), IsEmpty());
  fake_.SetGids("fake1", FakeGids());
  ExpectEvents(daemon, {"fake1 added"});
}

TEST_F(OfferedCardsTest, CardWithoutARequiredEngineIsLeftOut) {
  VerbsOptions options = QuietOptions();
  options.fast_engine = FastEngine::kWindow;
  options.allow_unbounded_windows = true;
  fake_.set_automatic(true);
  Daemon daemon(fake_, options);
  FakeDevice card = Card("fake1");
  card.attributes.device_cap_flags = 0;
  fake_.AddDevice(card);
  fake_.cards().Announce();
  ASSERT_TRUE(Eventually([&] { return !daemon.events().empty(); }));
  EXPECT_THAT(daemon.events(), ElementsAre(AllOf(StartsWith("fake1: "), HasSubstr("windows do not work"))));
  EXPECT_THAT(Names(daemon.provider()), ElementsAre("fake0"));
}

TEST_F(OfferedCardsTest, CardThatHangsHoldsNobodyUp) {
  HookedVerbs hooked(fake_);
  Daemon daemon(fake_, hooked, QuietOptions());
  Side side(daemon);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  std::atomic<bool> has_begun = false;
  std::latch begins(1);
  std::latch ends(1);
  hooked.set_before([&](std::string_view call) {
    if (call == "Open" && !has_begun.exchange(true)) {
      begins.count_down();
      ends.wait();
    }
  });
  Add("fake1");
  begins.wait();
  side.Post(Write(1));
  ASSERT_TRUE(fake_.Complete(side.number()));
  EXPECT_TRUE(side.Initiated(1));
  fake_.RaiseAsync(IBV_EVENT_PORT_ERR, 1, "fake0");
  ExpectEvents(daemon, {"fake0 port down"});
  EXPECT_THAT(Names(daemon.provider()), ElementsAre("fake0"));
  ends.count_down();
  ExpectEvents(daemon, {"fake0 port down", "fake1 added"});
}

}  // namespace
}  // namespace rnicd::provider
