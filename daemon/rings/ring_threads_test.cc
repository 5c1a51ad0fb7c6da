#include "daemon/rings/ring_threads.h"

#include "daemon/core/tenant/heap_cost.h"
#include "daemon/rings/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::rings {
namespace {

using core::FailsAt;
using core::FailsWith;
using ring::Opcode;
using ring::Outcome;

TEST_F(RingTest, ANopCompletes) {
  client_.Submit({.opcode = Opcode::kNop});
  const Outcome outcome = client_.Next();
  EXPECT_EQ(outcome.status, 0U);
  EXPECT_EQ(outcome.opcode, Opcode::kNop);
}

TEST_F(RingTest, AChainIsPostedAndItsTokensAreReturned) {
  const QueuePairId pair = ConnectedPair();
  const MemoryRegionId region = owner_.FastRegion();
  const std::vector<uint64_t> pages = core::PagesOf(owner_.Lam(owner_.Memory(2), 2));
  client_.SubmitChain(pair, {core::FastRegister(region, pages, kOpFlagRemoteWrite, 7), core::Invalidate(region)});
  const Outcome outcome = client_.Next();
  EXPECT_EQ(outcome.status, 0U);
  EXPECT_EQ(outcome.posted, 2U);
  EXPECT_EQ(client_.Token(0), owner_.session->Begin()->regions().GetRemoteToken(region)->value);
  EXPECT_EQ(client_.Token(1), 0U);
  const auto results = owner_.session->Begin()->queues().GetResults(owner_.queue, 8);
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ(results->front().request_context, 7U);
  EXPECT_TRUE(results->back().ok());
}

TEST_F(RingTest, ARefusedRequestEndsItsChainAndItsFieldIsNamed) {
  const QueuePairId pair = ConnectedPair();
  const MemoryRegionId region = owner_.FastRegion();
  const std::vector<uint64_t> pages = core::PagesOf(owner_.Lam(owner_.Memory(1), 1));
  const std::vector<uint64_t> foreign = {1};
  client_.SubmitChain(pair, {core::FastRegister(region, pages), core::FastRegister(region, foreign)});
  const Outcome outcome = client_.Next();
  EXPECT_EQ(outcome.posted, 1U);
  EXPECT_EQ(outcome.reason, NumberOf(ErrorReason::LOGICAL_ADDRESS_UNALIGNED));
  EXPECT_NE(client_.Token(0), 0U);
  EXPECT_EQ(client_.Field(outcome, 2), "requests[1].fast_register.adapter_page_array[0]");
}

// What the client left in the result area is no token.
TEST_F(RingTest, AChainThatIsRefusedAsAWholeHasNoTokens) {
  const struct {
    uint32_t count;
    uint32_t payload_bytes;
    ErrorReason reason;
  } kRows[] = {{2, 2 * ring::kEntryBytes, ErrorReason::OBJECT_NOT_FOUND},
               {2, ring::kEntryBytes, ErrorReason::FIELD_OUT_OF_RANGE},
               {2, 4, ErrorReason::FIELD_OUT_OF_RANGE}};
  const uint32_t offset = *client_.end->Reserve(512);
  const WorkRequest invalidate = core::Invalidate(MemoryRegionId{1});
  for (const auto& row : kRows) {
    std::byte* const first = client_.end->payload(offset, 256).data();
    ring::Encode(invalidate, first + ring::Encode(invalidate, first));
    client_.result = client_.end->payload(offset + 256, 256);
    std::memset(client_.result.data(), 0xAB, client_.result.size());
    client_.Submit({.opcode = Opcode::kPost,
                    .count = row.count,
                    .object = 99,
                    .payload_offset = offset,
                    .payload_bytes = row.payload_bytes,
                    .result_offset = offset + 256,
                    .result_bytes = 256});
    const Outcome outcome = client_.Next();
    EXPECT_EQ(outcome.reason, NumberOf(row.reason));
    EXPECT_EQ(client_.Token(0) | client_.Token(1), 0U);
    EXPECT_NE(client_.Field(outcome, row.count), "");
  }
}

TEST_F(RingTest, FieldOfAChainOfAnImpossibleLengthIsAtTheStart) {
  for (const uint32_t count : {0U, ring::kChainMax + 1, UINT32_MAX}) {
    const uint32_t offset = *client_.end->Reserve(64);
    client_.result = client_.end->payload(offset, 64);
    client_.Submit({.opcode = Opcode::kPost, .count = count, .result_offset = offset, .result_bytes = 64});
    const Outcome outcome = client_.Next();
    EXPECT_EQ(outcome.reason, NumberOf(ErrorReason::BATCH_SIZE));
    EXPECT_EQ(client_.Field(outcome, 0), "count");
  }
}

TEST_F(RingTest, RegistersReturnsTheTokensAndDeregisters) {
  const MemoryRegionId region = owner_.Region(owner_.domain);
  client_.SubmitRegister(
      region, {.memory_id = owner_.Memory(1), .byte_count = core::kPage, .virtual_address = {core::kRegionBase}});
  const Outcome registered = client_.Next();
  EXPECT_EQ(registered.status, 0U);
  EXPECT_EQ(registered.base_or_limit, core::kRegionBase);
  EXPECT_EQ(registered.length_or_used, core::kPage);
  EXPECT_EQ(registered.local_token, owner_.session->Begin()->regions().GetLocalToken(region)->value);
  client_.Submit({.opcode = Opcode::kGetRemoteToken, .object = region.value});
  EXPECT_EQ(client_.Next().remote_token, registered.remote_token);
  client_.Submit({.opcode = Opcode::kDeregisterMr, .object = region.value});
  EXPECT_EQ(client_.Next().status, 0U);
  EXPECT_THAT(owner_.session->Begin()->regions().GetLocalToken(region).status(),
              FailsWith(ErrorReason::REGION_NOT_REGISTERED));
}

TEST_F(RingTest, WhatACallMayNotDoIsRefusedWithoutHarm) {
  const struct {
    ring::Submission entry;
    ErrorReason reason;
  } kRows[] = {
      {{.opcode = Opcode::kPost, .count = 1, .object = 1, .payload_bytes = 64}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.opcode = Opcode::kPost, .count = 0}, ErrorReason::BATCH_SIZE},
      {{.opcode = Opcode::kPost, .count = 1, .payload_offset = 4, .payload_bytes = 64},
       ErrorReason::FIELD_OUT_OF_RANGE},
      {{.payload_offset = UINT32_MAX - 7, .payload_bytes = 64}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.payload_bytes = UINT32_MAX - 7}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.payload_bytes = 60}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.opcode = Opcode::kRegisterMr, .count = 1}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.opcode = Opcode::kRegisterMr, .object = 99}, ErrorReason::OBJECT_NOT_FOUND},
      {{.opcode = Opcode::kDeregisterMr, .object = 99}, ErrorReason::OBJECT_NOT_FOUND},
      {{.opcode = Opcode::kGetRemoteToken, .object = 99}, ErrorReason::OBJECT_NOT_FOUND},
      {{.opcode = Opcode::kArmCq, .object = 99}, ErrorReason::OBJECT_NOT_FOUND},
      {{.opcode = Opcode::kArmCq, .object = 99, .argument = 3}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.opcode = static_cast<Opcode>(77)}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.flags = 1}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.reserved = {0, 0, 1}}, ErrorReason::FIELD_OUT_OF_RANGE},
  };
  for (const auto& row : kRows) {
    client_.Submit(row.entry);
    EXPECT_EQ(client_.Next().reason, NumberOf(row.reason)) << static_cast<int>(row.entry.opcode);
  }
  client_.Submit({});
  EXPECT_EQ(client_.Next().status, 0U);
}

TEST_F(RingTest, AResultAreaOutsideThePayloadIsNotWritten) {
  client_.Submit({.opcode = Opcode::kPost, .count = 1, .result_offset = UINT32_MAX - 7, .result_bytes = 64});
  EXPECT_EQ(client_.Next().field_bytes, 0U);
}

TEST_F(RingTest, ImpossibleIndicesEndTheRingAndNothingElse) {
  ring::StoreInOrder(client_.header().submission_tail, 1000);
  client_.RingDoorbell();
  EXPECT_TRUE(Eventually([&] { return client_.end->end_reason() != 0; }));
  EXPECT_EQ(client_.end->end_reason(), NumberOf(ErrorReason::RING_BROKEN));
  EXPECT_EQ(world_.Counts().broken, 1U);
  RingClient another(*owner_.session);
  another.Submit({});
  EXPECT_EQ(another.Next().status, 0U);
  const auto decisions = world_.observer.counts().decisions;
  const auto broken =
      std::find_if(decisions.begin(), decisions.end(), [](const auto& d) { return d.what == "ring.end"; });
  ASSERT_NE(broken, decisions.end());
  EXPECT_EQ(broken->refused, ErrorReason::RING_BROKEN);
}

TEST_F(RingTest, AClientThatReadsNoOutcomesHoldsUpOnlyItself) {
  RingClient lazy(*owner_.session, 2);
  lazy.Submit({});
  lazy.Submit({});
  EXPECT_TRUE(Eventually([&] { return ring::LoadAcquire(lazy.header().completion_tail) == 2; }));
  // Beyond what it has room for.
  ring::StoreInOrder(lazy.header().submission_tail, 3);
  lazy.RingDoorbell();
  client_.Submit({});
  EXPECT_EQ(client_.Next().status, 0U);
  EXPECT_EQ(ring::LoadAcquire(lazy.header().submission_head), 2U);
  EXPECT_TRUE(lazy.end->Poll().has_value());
  lazy.RingDoorbell();
  EXPECT_TRUE(Eventually([&] { return ring::LoadAcquire(lazy.header().completion_tail) == 3; }));
}

TEST_F(RingTest, AClosedRingTakesNothingMoreAndIsRefunded) {
  auto closed = std::make_shared<core::Awaited<absl::Status>>();
  const core::Done<> done = [closed](const absl::Status& status) { closed->Set(status); };
  ASSERT_TRUE(owner_.session->Begin()->rings().Close(client_.id, done).pending());
  ASSERT_TRUE(closed->Get().has_value());
  EXPECT_EQ(client_.end->end_reason(), NumberOf(ErrorReason::OBJECT_CLOSING));
  client_.Submit({});
  client_.RingDoorbell();
  EXPECT_TRUE(Eventually([&] { return owner_.session->ledger().used(core::Resource::kRings) == 0; }));
  EXPECT_EQ(ring::LoadAcquire(client_.header().submission_head), 0U);
  EXPECT_THAT(owner_.session->Begin()->rings().Close(client_.id, done).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "ring_id"));
}

TEST_F(RingTest, TheEndOfTheSessionEndsTheRingAndLeavesNothing) {
  client_.Submit({});
  client_.Next();
  world_.End(owner_.session);
  EXPECT_EQ(client_.end->end_reason(), NumberOf(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(world_.os.live_mappings(), 0U);
  // Until the client releases the memory, too.
  EXPECT_EQ(world_.ledger->used(core::Resource::kLingeringBytes), client_.file.size());
  EXPECT_EQ(world_.ledger->used(core::Resource::kRings), 0U);
  client_.Unmap();
  EXPECT_TRUE(Eventually([&] {
    world_.lingering.Sweep();
    return world_.Held().empty();
  }));
}

TEST(RingsTest, ARequestThatPendsCompletesWhenItIsDone) {
  RingWorld world(core::SlowFromTwoPages());
  core::QueueOwner owner(world);
  RingClient client(*owner.session);
  const MemoryRegionId region = owner.Region(owner.domain);
  client.SubmitRegister(
      region, {.memory_id = owner.Memory(4), .byte_count = 4 * core::kPage, .virtual_address = {core::kRegionBase}});
  const Outcome registered = client.Next();
  EXPECT_EQ(registered.status, 0U);
  EXPECT_EQ(registered.length_or_used, 4 * core::kPage);
  client.Submit({.opcode = Opcode::kDeregisterMr, .object = region.value});
  EXPECT_EQ(client.Next().status, 0U);
}

TEST(RingsTest, ARingAboveItsRateWaitsAndLosesNothing) {
  core::WorldOptions options;
  options.policy = core::OneTenantForEachUid({});
  core::TenantRule& rule = options.policy->tenants.emplace_back();
  rule.name = "slow";
  rule.matches = {{.uid = 1000}};
  rule.limits.session_rate = {.per_second = 1000, .burst = 1};
  std::swap(options.policy->tenants.front(), options.policy->tenants.back());
  RingWorld world(options);
  core::QueueOwner owner(world);
  RingClient client(*owner.session);
  for (int entry = 0; entry < 100; ++entry) {
    client.Submit({});
  }
  int completed = 0;
  EXPECT_TRUE(Eventually([&] {
    world.clock.Advance(std::chrono::milliseconds(1));
    completed += client.end->Poll().has_value() ? 1 : 0;
    return completed == 100;
  }));
}

TEST(EntryRunnerTest, ALongPayloadCostsMoreThanItsRequests) {
  EXPECT_EQ(EntryRunner::CostOf({.opcode = Opcode::kPost, .count = 64, .payload_bytes = 64 * 72}), 64U);
  EXPECT_EQ(EntryRunner::CostOf({.opcode = Opcode::kPost, .count = 1, .payload_bytes = 1U << 20}), 512U);
  EXPECT_EQ(EntryRunner::CostOf({.opcode = Opcode::kNop, .payload_bytes = UINT32_MAX}), 512U);
  EXPECT_EQ(EntryRunner::RequestsOf({.opcode = Opcode::kPost, .count = 1, .payload_bytes = 1U << 20}), 1U);
}

TEST(RingsTest, ManyRingsOfTwoTenantsAreServedTogether) {
  RingWorld world;
  core::Owner first(world, 1, 1000);
  core::Owner second(world, 2, 2000);
  std::vector<std::unique_ptr<RingClient>> clients;
  for (int index = 0; index < 8; ++index) {
    clients.push_back(std::make_unique<RingClient>(*(index % 2 == 0 ? first : second).session));
  }
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& client : clients) {
      client->Submit({});
    }
    for (const auto& client : clients) {
      ASSERT_EQ(client->Next().status, 0U);
    }
  }
  // A turn is counted at its end.
  EXPECT_TRUE(Eventually([&] { return world.Counts().entries == kRounds * clients.size(); }));
}

// A clock that advances with each read, so that a thread that polls uses up its time and one that sleeps does not.
class TickingClock final : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::microseconds(++looks_)); }

 private:
  mutable std::atomic<int64_t> looks_ = 0;
};

// About half of the time is between two looks of a thread that spins: more than half of 60 percent, and less than all.
TEST(RingsTest, ATenantWithoutRingsLeavesItsShareOfSpinningToOthers) {
  RingWorld world({}, {.longest = std::chrono::milliseconds(300), .percent = 60}, std::this_thread::yield,
                  std::make_unique<TickingClock>());
  core::Owner stays(world, 1, 1000);
  core::Owner goes(world, 2, 2000);
  RingClient client(*stays.session);
  RingClient other(*goes.session);
  client.end->SetCpu(UINT32_MAX);  // Never this thread's.
  world.End(goes.session);
  client.Submit({});
  EXPECT_EQ(client.Next().status, 0U);
  EXPECT_TRUE(Eventually([&] { return world.Counts().spinning >= std::chrono::milliseconds(100); }));
}

TEST(RingsTest, ANodeWithoutRingsSaysSo) {
  core::World world;
  core::Owner owner(world);
  EXPECT_THAT(owner.session->Begin()->rings().Open(0, 0).status(), FailsWith(ErrorReason::RINGS_UNAVAILABLE));
}

TEST(RingsTest, WithoutMemoryForARingNothingIsHeld) {
  RingWorld world;
  core::Owner owner(world);
  for (const char* call : {"CreateMemoryFile", "AddSeals", "Map", "Populate"}) {
    world.os.FailNext(call, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    EXPECT_THAT(owner.session->Begin()->rings().Open(0, 0).status(), FailsWith(ErrorReason::RINGS_UNAVAILABLE)) << call;
    EXPECT_EQ(owner.session->ledger().used(core::Resource::kRings), 0U) << call;
    EXPECT_EQ(world.os.live_mappings(), 0U) << call;
  }
}

TEST(RingsTest, RingsAndTheirMemoryAreLimited) {
  core::WorldOptions options;
  options.limits.session[core::Resource::kRings] = 1;
  RingWorld world(options);
  core::Owner owner(world);
  const RingClient client(*owner.session);
  EXPECT_EQ(client.file.size(), size_t{64} << 10);
  EXPECT_GE(owner.session->ledger().used(core::Resource::kHeapBytes), client.file.size());
  EXPECT_THAT(owner.session->Begin()->rings().Open(0, 0).status(), FailsWith(ErrorReason::QUOTA_RINGS));
  const uint64_t used = world.ledger->used(core::Resource::kHeapBytes);
  core::Limits limits;
  limits[core::Resource::kHeapBytes] = used + client.file.size();
  world.ledger->SetLimits(limits);
  core::Owner other(world, 2);
  const absl::Status no_heap = other.session->Begin()->rings().Open(0, 0).status();
  EXPECT_THAT(no_heap, FailsWith(ErrorReason::QUOTA_HEAP_BYTES));
  EXPECT_EQ(ErrorInfoOf(no_heap).requested, core::HeapCostOf(core::Resource::kRings, 1) + client.file.size());
  EXPECT_THAT(owner.session->Begin()->rings().Open(3, 0).status(), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "entries"));
  EXPECT_THAT(owner.session->Begin()->rings().Open(0, 1).status(),
              FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "payload_bytes"));
}

}  // namespace
}  // namespace rnicd::rings
