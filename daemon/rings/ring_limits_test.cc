// Every limit that holds for calls holds for the entries of rings: the same refusals with the same figures, the same
// rates, the same ends.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/request/lease.h"
#include "daemon/rings/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::rings {
namespace {

using core::FailsWith;
using core::kPage;
using core::Resource;
using ring::Opcode;
using ring::Outcome;

constexpr uint64_t kPages = 2;

// --- refusals ---

struct Limit {
  std::string name;
  ErrorReason reason;
  std::function<void(core::WorldOptions& options)> configure = [](core::WorldOptions&) {};
  std::function<void(RingWorld& world)> enforce = [](RingWorld&) {};
  // Another registration waits for a worker.
  bool behind_another = false;
};

void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.name; }

std::vector<Limit> Limits() {
  return {
      {.name = "PinnedBytesOfTheSession",
       .reason = ErrorReason::QUOTA_PINNED_BYTES,
       .configure = [](core::WorldOptions& options) { options.limits.session[Resource::kPinnedBytes] = kPage; }},
      {.name = "PinnedBytesOfTheTenant",
       .reason = ErrorReason::QUOTA_PINNED_BYTES,
       .configure = [](core::WorldOptions& options) { options.uid_limits[Resource::kPinnedBytes] = kPage; }},
      {.name = "PinnedBytesOfTheNode",
       .reason = ErrorReason::QUOTA_PINNED_BYTES,
       .configure = [](core::WorldOptions& options) { options.limits.node[Resource::kPinnedBytes] = kPage; }},
      {.name = "RegisteredBytes",
       .reason = ErrorReason::QUOTA_REGISTERED_BYTES,
       .configure = [](core::WorldOptions& options) { options.limits.session[Resource::kRegisteredBytes] = kPage; }},
      {.name = "PendingRequests",
       .reason = ErrorReason::QUOTA_PENDING_REQUESTS,
       .configure =
           [](core::WorldOptions& options) {
             options.limits.pending_threshold_bytes = kPages * kPage;
             options.limits.session[Resource::kPendingRequests] = 1;
           },
       .behind_another = true},
      {.name = "Draining",
       .reason = ErrorReason::DAEMON_DRAINING,
       .enforce = [](RingWorld& world) { world.draining.store(true); }},
  };
}

core::WorldOptions OptionsOf(const Limit& limit) {
  core::WorldOptions options;
  limit.configure(options);
  return options;
}

class EachLimit : public testing::TestWithParam<Limit> {
 protected:
  // The request whose outcome is compared, by a call.
  absl::Status Call() { return owner_.Register(region_, memory_, kPages * kPage).status(); }

  RingWorld world_{OptionsOf(GetParam())};
  core::QueueOwner owner_{world_};
  RingClient client_{*owner_.session};
  const MemoryObjectId memory_ = owner_.Memory(kPages);
  const MemoryRegionId region_ = owner_.Region(owner_.domain);
};

TEST_P(EachLimit, RefusesAnEntryAsItRefusesTheCall) {
  std::optional<core::BusyWorkers> busy;
  if (GetParam().behind_another) {
    busy.emplace(*world_.workers, 2);
    const auto begun = owner_.BeginRegister(owner_.Region(owner_.domain), memory_, kPages * kPage, {},
                                            [](const absl::StatusOr<Registration>&) {});
    ASSERT_TRUE(begun.pending());
  }
  GetParam().enforce(world_);
  const absl::Status refused = Call();
  ASSERT_THAT(refused, FailsWith(GetParam().reason));
  const std::string held = world_.Held();
  client_.SubmitRegister(region_,
                         {.memory_id = memory_, .byte_count = kPages * kPage, .virtual_address = {core::kRegionBase}});
  const Outcome outcome = client_.Next();
  const ErrorInfo info = ErrorInfoOf(refused);
  EXPECT_EQ(outcome.status, static_cast<uint32_t>(NtStatusOf(refused)));
  EXPECT_EQ(outcome.reason, NumberOf(info.reason));
  EXPECT_EQ(outcome.base_or_limit, info.limit);
  EXPECT_EQ(outcome.length_or_used, info.used);
  EXPECT_EQ(outcome.requested, info.requested);
  EXPECT_EQ(world_.Held(), held);
}

INSTANTIATE_TEST_SUITE_P(Limits, EachLimit, testing::ValuesIn(Limits()),
                         [](const auto& row) { return row.param.name; });

TEST(RingLimitsTest, PostedPagesAreLimited) {
  core::WorldOptions options;
  options.limits.session[Resource::kPostedPages] = 1;
  RingWorld world(options);
  core::QueueOwner owner(world);
  RingClient client(*owner.session);
  const QueuePairId pair = owner.Pair();
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(pair, owner.Address(pair)).ok());
  const std::vector<uint64_t> pages = core::PagesOf(owner.Lam(owner.Memory(kPages), kPages));
  client.SubmitChain(pair, {core::FastRegister(owner.FastRegion(), pages)});
  const Outcome outcome = client.Next();
  EXPECT_EQ(outcome.reason, NumberOf(ErrorReason::QUOTA_POSTED_PAGES));
  EXPECT_EQ(outcome.base_or_limit, 1U);
}

TEST(RingLimitsTest, TheMemoryOfARingIsChargedInWholePagesOfTheKernel) {
  constexpr uint64_t kKernelPage = uint64_t{64} << 10;
  RingWorld world;
  world.os.UseKernelPages(kKernelPage);
  const core::QueueOwner owner(world);
  const uint64_t before = owner.session->ledger().used(Resource::kHeapBytes);
  const auto opened = owner.session->Begin()->rings().Open(/*entries=*/16, ring::kPayloadBytesMin);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_LT(opened->file_bytes, kKernelPage);
  EXPECT_GE(owner.session->ledger().used(Resource::kHeapBytes), before + kKernelPage);
}

TEST(RingLimitsTest, ARefusedEntryIsCountedAndAudited) {
  RingWorld world;
  core::QueueOwner owner(world);
  RingClient client(*owner.session);
  client.Submit({.opcode = Opcode::kDeregisterMr, .object = 99});
  EXPECT_NE(client.Next().status, 0U);
  EXPECT_EQ(world.Counts().refused, 1U);
  const std::vector<std::pair<ErrorReason, uint64_t>> once = {{ErrorReason::OBJECT_NOT_FOUND, 1}};
  EXPECT_EQ(owner.session->tenant().tally()->refusals(), once);
  const core::RecordedDecision decision = world.observer.counts().decisions.back();
  EXPECT_EQ(decision.what, "MemoryService.DeregisterMr");
  EXPECT_EQ(decision.refused, ErrorReason::OBJECT_NOT_FOUND);
  EXPECT_EQ(decision.object, "mr_id=99");
  EXPECT_EQ(decision.note, "ring");
}

// --- rates ---

core::WorldOptions OneTenant(const core::TenantLimits& limits) {
  core::WorldOptions options;
  options.policy.emplace();
  options.policy->tenants.push_back({.name = "limited", .limits = limits});
  options.policy->default_tenant = "limited";
  return options;
}

// Time does not pass in the rates of this world.
class RateWorld : public RingWorld {
 public:
  explicit RateWorld(const core::TenantLimits& limits) : RingWorld(OneTenant(limits)) {}

  static bool IsAboveItsRate(const core::Owner& owner) {
    std::chrono::nanoseconds wait{0};
    return !owner.session->AdmitCall(&wait).ok();
  }
  bool HasPaused() const {
    return Eventually([this] { return Counts().pauses > 0; });
  }
};

constexpr core::Rate kOneCall{.per_second = 20, .burst = 1};
// As docs/RINGS.md says.
constexpr uint32_t kEntriesOfACall = 32;

struct RateRow {
  std::string name;
  core::TenantLimits limits;
  Opcode opcode = Opcode::kNop;
};

void PrintTo(const RateRow& row, std::ostream* out) { *out << row.name; }

class EachRate : public testing::TestWithParam<RateRow> {};

TEST_P(EachRate, HoldsAnEntryUpUntilACallWouldPass) {
  RateWorld world(GetParam().limits);
  core::Owner owner(world);
  RingClient client(*owner.session);
  for (uint32_t entry = 0; entry <= kEntriesOfACall; ++entry) {
    client.Submit({.opcode = GetParam().opcode});
  }
  for (uint32_t entry = 0; entry < kEntriesOfACall; ++entry) {
    client.Next();
  }
  EXPECT_TRUE(world.HasPaused());
  EXPECT_TRUE(RateWorld::IsAboveItsRate(owner)) << "entries and calls share the rate";
  EXPECT_EQ(ring::LoadAcquire(client.header().submission_head), kEntriesOfACall);
  world.clock.Advance(std::chrono::seconds(1));
  client.Next();
  EXPECT_TRUE(RateWorld::IsAboveItsRate(owner));
}

INSTANTIATE_TEST_SUITE_P(Rates, EachRate,
                         testing::Values(RateRow{.name = "OfTheSession", .limits = {.session_rate = kOneCall}},
                                         RateRow{.name = "OfTheTenant", .limits = {.tenant_rate = kOneCall}},
                                         RateRow{.name = "ForRefusedEntries",
                                                 .limits = {.session_rate = kOneCall},
                                                 .opcode = static_cast<Opcode>(77)}),
                         [](const auto& row) { return row.param.name; });

TEST(RingRateTest, AnEntryWaitsForWhatCallsUsedUp) {
  RateWorld world({.session_rate = kOneCall});
  core::Owner owner(world);
  RingClient client(*owner.session);
  EXPECT_FALSE(RateWorld::IsAboveItsRate(owner));
  client.Submit({});
  EXPECT_TRUE(world.HasPaused());
  EXPECT_EQ(ring::LoadAcquire(client.header().submission_head), 0U);
  world.clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(client.Next().status, 0U);
}

// The bytes that it registers count as with the call.
TEST(RingRateTest, ARegistrationCostsItsBytes) {
  constexpr uint64_t kCalls = 4;
  constexpr uint64_t kBytes = (kCalls - 1) * core::kRegisteredBytesPerRequest;
  RateWorld world({.session_rate = {.per_second = kCalls}});
  core::QueueOwner owner(world);
  RingClient client(*owner.session);
  const MemoryObjectId memory = owner.Memory(kBytes / kPage);
  // The rate has recovered from the cost of the memory.
  world.clock.Advance(std::chrono::seconds(10));
  client.SubmitRegister(owner.Region(owner.domain),
                        {.memory_id = memory, .byte_count = kBytes, .virtual_address = {core::kRegionBase}});
  EXPECT_EQ(client.Next().status, 0U);
  EXPECT_TRUE(RateWorld::IsAboveItsRate(owner));
}

// --- doorbells ---

TEST(RingRateTest, DoorbellsWithoutEntriesCountAndAreNotHeardAboveTheRate) {
  constexpr uint64_t kDoorbellsOfACall = 4;
  RateWorld world({.session_rate = kOneCall});
  core::Owner owner(world);
  RingClient client(*owner.session);
  for (uint64_t doorbell = 1; doorbell <= kDoorbellsOfACall; ++doorbell) {
    client.RingDoorbell();
    EXPECT_TRUE(Eventually([&] { return world.Counts().empty_wakeups == doorbell; }));
  }
  EXPECT_TRUE(RateWorld::IsAboveItsRate(owner));
  client.RingDoorbell();
  EXPECT_TRUE(world.HasPaused());
  for (int doorbell = 0; doorbell < 10'000; ++doorbell) {
    client.RingDoorbell();
  }
  // After a pause the thread wakes the ring because doorbells were muted, and once more for the next doorbell.
  const core::RingCounts counts = world.Counts();
  EXPECT_LE(counts.doorbells, kDoorbellsOfACall + 1 + 2 * counts.pauses);
  client.Submit({});
  world.clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(client.Next().status, 0U);
}

// Without a rate.
void RingInVainUntilPaused(RingWorld& world, RingClient& client, uint64_t pauses) {
  const uint64_t before = world.Counts().pauses;
  EXPECT_TRUE(Eventually([&] {
    client.RingDoorbell();
    return world.Counts().pauses >= before + pauses;
  }));
}

TEST(RingDoorbellTest, ManyWithoutEntriesAreHeardEverMoreSeldom) {
  RingWorld world;
  core::Owner owner(world);
  RingClient client(*owner.session);
  const Instant begin = std::chrono::steady_clock::now();
  RingInVainUntilPaused(world, client, 8);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1 + 2 + 4 + 8 + 16 + 32 + 64));
  // A pause may be counted before it has begun.
  const core::RingCounts counts = world.Counts();
  EXPECT_LE(counts.empty_wakeups, 16 + counts.pauses + 1);
}

TEST(RingDoorbellTest, AnEntryIsServedAfterThemAndEndsTheRow) {
  RingWorld world;
  core::Owner owner(world);
  RingClient client(*owner.session);
  RingInVainUntilPaused(world, client, 2);
  client.Submit({});
  client.RingDoorbell();
  EXPECT_EQ(client.Next().status, 0U);
  const uint64_t before = world.Counts().empty_wakeups;
  RingInVainUntilPaused(world, client, 1);
  // The doorbell of the entry may count as the first one without an entry.
  EXPECT_GE(world.Counts().empty_wakeups, before + 16);
}

TEST(RingRateTest, ADoorbellThatWasNotHeardIsNotLost) {
  RateWorld world({.session_rate = {.per_second = 1000, .burst = 1}});
  core::Owner owner(world);
  RingClient client(*owner.session);
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t pauses = world.Counts().pauses;
    EXPECT_TRUE(Eventually([&] {
      client.RingDoorbell();
      return world.Counts().pauses > pauses;
    }));
    client.Submit({});
    client.RingDoorbell();
    world.clock.Advance(std::chrono::seconds(1));
    ASSERT_EQ(client.Next().status, 0U) << round;
  }
}

// A client that withdraws its entry has caused a wake-up without an entry, unless the entry was taken before: then the
// ring is broken.
TEST(RingRateTest, AnEntryThatDisappearsCountsOrBreaksTheRing) {
  RateWorld world({.session_rate = kOneCall});
  core::Owner owner(world);
  RingClient client(*owner.session);
  EXPECT_TRUE(Eventually([&] {
    ring::StoreInOrder(client.header().submission_tail, 1);
    client.RingDoorbell();
    ring::StoreInOrder(client.header().submission_tail, 0);
    return world.Counts().pauses + world.Counts().broken > 0;
  }));
}

// --- ends ---

struct End {
  std::string name;
  std::function<void(RingWorld& world, const core::Session& session, GrantId grant)> end;
};

void PrintTo(const End& end, std::ostream* out) { *out << end.name; }

std::vector<End> Ends() {
  return {
      {"Evicted", [](RingWorld& world, const core::Session& session,
                     GrantId) { EXPECT_TRUE(world.registry.Evict(session.id()).ok()); }},
      {"GrantRevoked",
       [](RingWorld& world, const core::Session&, GrantId grant) {
         const auto tenant = world.tenants.RevokeGrant(grant);
         ASSERT_TRUE(tenant.ok());
         EXPECT_EQ(world.registry.EndRefusedBy(**tenant, core::EndCause::kGrantRevoked), 1U);
       }},
      {"GrantExpired",
       [](RingWorld& world, const core::Session&, GrantId) {
         world.clock.Advance(std::chrono::hours(2));
         world.registry.EndExpired();
       }},
      {"DaemonStopping",
       [](RingWorld& world, const core::Session&, GrantId) { world.registry.Drain(core::EndCause::kDaemonStopping); }},
  };
}

class EachEnd : public testing::TestWithParam<End> {};

TEST_P(EachEnd, EndsTheRingAndExecutesNothingMore) {
  RingWorld world;
  const auto grant = world.tenants.CreateGrant({.name = "rings", .lifetime = std::chrono::hours(1)});
  ASSERT_TRUE(grant.ok()) << grant.status();
  auto opened = world.registry.Open(core::CallerNumbered(1), "test", grant->secret);
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::shared_ptr<core::Session> session = *std::move(opened);
  RingClient client(*session);
  client.Submit({});
  EXPECT_EQ(client.Next().status, 0U);
  GetParam().end(world, *session, grant->id);
  EXPECT_TRUE(Eventually([&] { return client.end->end_reason() != 0; }));
  EXPECT_EQ(client.end->end_reason(), NumberOf(ErrorReason::SESSION_ENDING));
  EXPECT_TRUE(Eventually([&] { return session->ended(); }));
  client.Submit({});
  client.RingDoorbell();
  EXPECT_EQ(ring::LoadAcquire(client.header().submission_head), 1U);
  EXPECT_EQ(world.ledger->used(Resource::kRings), 0U);
}

INSTANTIATE_TEST_SUITE_P(Ends, EachEnd, testing::ValuesIn(Ends()), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rnicd::rings
