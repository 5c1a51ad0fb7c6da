#include "daemon/core/tenant/ledger.h"

#include <thread>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

Limits LimitOf(Resource resource, uint64_t value) {
  Limits limits;
  limits[resource] = value;
  return limits;
}

std::shared_ptr<Ledger> LedgerWith(Resource resource, uint64_t limit, std::shared_ptr<Ledger> parent = nullptr) {
  return std::make_shared<Ledger>(LimitOf(resource, limit), std::move(parent));
}

TEST(Ledger, TheLastUnitUnderTheLimitIsGivenAndTheNextIsNot) {
  const auto ledger = LedgerWith(Resource::kRegions, 3);
  EXPECT_TRUE(ledger->Take(Resource::kRegions, 3).ok());
  const absl::Status refused = ledger->Take(Resource::kRegions, 1);
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_REGIONS));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 3u);
  EXPECT_EQ(ErrorInfoOf(refused).used, 3u);
  EXPECT_EQ(ErrorInfoOf(refused).requested, 1u);
}

TEST(Ledger, EachResourceIsRefusedWithItsOwnReason) {
  const std::pair<Resource, ErrorReason> rows[] = {
      {Resource::kSessions, ErrorReason::QUOTA_SESSIONS},
      {Resource::kAdapters, ErrorReason::QUOTA_ADAPTERS},
      {Resource::kProtectionDomains, ErrorReason::QUOTA_PROTECTION_DOMAINS},
      {Resource::kMemoryObjects, ErrorReason::QUOTA_MEMORY_OBJECTS},
      {Resource::kMemoryBytes, ErrorReason::QUOTA_MEMORY_BYTES},
      {Resource::kRegions, ErrorReason::QUOTA_REGIONS},
      {Resource::kPinnedBytes, ErrorReason::QUOTA_PINNED_BYTES},
      {Resource::kPendingRequests, ErrorReason::QUOTA_PENDING_REQUESTS},
      {Resource::kLogicalMappings, ErrorReason::QUOTA_LOGICAL_MAPPINGS},
      {Resource::kFastRegisterPages, ErrorReason::QUOTA_FAST_REGISTER_PAGES},
      {Resource::kCompletionQueues, ErrorReason::QUOTA_COMPLETION_QUEUES},
      {Resource::kCqEntries, ErrorReason::QUOTA_CQ_ENTRIES},
      {Resource::kQueuePairs, ErrorReason::QUOTA_QUEUE_PAIRS},
      {Resource::kQueueEntries, ErrorReason::QUOTA_QUEUE_ENTRIES},
      {Resource::kWindows, ErrorReason::QUOTA_WINDOWS},
      {Resource::kRings, ErrorReason::QUOTA_RINGS},
      {Resource::kListeners, ErrorReason::QUOTA_LISTENERS},
      {Resource::kConnectors, ErrorReason::QUOTA_CONNECTORS},
      {Resource::kPostedPages, ErrorReason::QUOTA_POSTED_PAGES},
      {Resource::kRegisteredBytes, ErrorReason::QUOTA_REGISTERED_BYTES},
      {Resource::kLogicalPages, ErrorReason::QUOTA_LOGICAL_PAGES},
      {Resource::kHeapBytes, ErrorReason::QUOTA_HEAP_BYTES},
  };
  static_assert(std::size(rows) == kLimitedResourceCount);
  for (const auto& [resource, reason] : rows) {
    EXPECT_THAT(LedgerWith(resource, 1)->Take(resource, 2), FailsWith(reason)) << ResourceName(resource);
    EXPECT_EQ(std::string(RowOf(reason).name), [&] {
      std::string upper = "QUOTA_";
      for (const char c : ResourceName(resource)) {
        upper += c == '_' ? c : static_cast<char>(c - 'a' + 'A');
      }
      return upper;
    }());
  }
}

TEST(Ledger, WithoutALimitOnlyWrappingIsRefused) {
  Ledger ledger({}, nullptr);
  EXPECT_TRUE(ledger.Take(Resource::kMemoryBytes, UINT64_MAX).ok());
  EXPECT_THAT(ledger.Take(Resource::kMemoryBytes, 1), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
  EXPECT_EQ(ledger.used(Resource::kMemoryBytes), UINT64_MAX);
}

TEST(Ledger, AHugeRequestUnderALimitDoesNotWrap) {
  const auto ledger = LedgerWith(Resource::kPinnedBytes, 100);
  ASSERT_TRUE(ledger->Take(Resource::kPinnedBytes, 60).ok());
  EXPECT_FALSE(ledger->Take(Resource::kPinnedBytes, UINT64_MAX - 59).ok());
  EXPECT_EQ(ledger->used(Resource::kPinnedBytes), 60u);
}

TEST(Ledger, ARefusalOfAnAncestorLeavesNothingTakenBelow) {
  const auto node = LedgerWith(Resource::kRegions, 2);
  const auto uid = LedgerWith(Resource::kRegions, 0, node);
  const auto session = LedgerWith(Resource::kRegions, 10, uid);
  ASSERT_TRUE(session->Take(Resource::kRegions, 2).ok());
  const absl::Status refused = session->Take(Resource::kRegions, 1);
  EXPECT_EQ(ErrorInfoOf(refused).limit, 2u) << "the figures are those of the ledger that refused";
  EXPECT_EQ(session->used(Resource::kRegions), 2u);
  EXPECT_EQ(uid->used(Resource::kRegions), 2u);
  session->Give(Resource::kRegions, 2);
  EXPECT_EQ(node->used(Resource::kRegions), 0u);
}

TEST(Ledger, EveryChargeAlsoChargesItsHeapBytesToTheSameOwners) {
  const auto node = LedgerWith(Resource::kHeapBytes, 0);
  const auto uid = LedgerWith(Resource::kHeapBytes, 0, node);
  const auto session = LedgerWith(Resource::kHeapBytes, 0, uid);
  uint64_t bytes = 0;
  for (size_t index = 0; index < kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (resource != Resource::kHeapBytes) {
      ASSERT_TRUE(session->Take(resource, 8192).ok());
      bytes += HeapCostOf(resource, 8192);
    }
  }
  ASSERT_GT(bytes, 0u);
  for (const auto& ledger : {session, uid, node}) {
    EXPECT_EQ(ledger->used(Resource::kHeapBytes), bytes);
  }
  for (size_t index = 0; index < kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (resource != Resource::kHeapBytes) {
      session->Give(resource, 4096);
      session->Give(resource, 4096);
    }
  }
  EXPECT_TRUE(session->empty() && uid->empty() && node->empty());
}

TEST(Ledger, HeapBytesThatDoNotFitRefuseTheChargeOnEveryLevel) {
  const uint64_t cost = HeapCostOf(Resource::kRegions, 1);
  const auto node = LedgerWith(Resource::kHeapBytes, 3 * cost - 1);
  const auto uid = LedgerWith(Resource::kRegions, 0, node);
  const auto session = LedgerWith(Resource::kRegions, 10, uid);
  ASSERT_TRUE(session->Take(Resource::kRegions, 2).ok());
  const absl::Status refused = session->Take(Resource::kRegions, 1);
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_HEAP_BYTES));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 3 * cost - 1);
  EXPECT_EQ(ErrorInfoOf(refused).used, 2 * cost);
  EXPECT_EQ(ErrorInfoOf(refused).requested, cost);
  for (const auto& ledger : {session, uid, node}) {
    EXPECT_EQ(ledger->used(Resource::kRegions), 2u);
    EXPECT_EQ(ledger->used(Resource::kHeapBytes), 2 * cost);
  }
  session->Give(Resource::kRegions, 2);
  EXPECT_TRUE(session->empty() && uid->empty() && node->empty());
}

TEST(Ledger, AmountsOfOneCallAreTakenTogetherOrNotAtAll) {
  const uint64_t cost = HeapCostOf(Resource::kRings, 1) + 4096;
  const auto node = LedgerWith(Resource::kHeapBytes, 2 * cost - 1);
  const auto session = LedgerWith(Resource::kRings, 2, node);
  const auto charges = Charge::TakeAll(session, {{Resource::kRings, 1}, {Resource::kHeapBytes, 4096}});
  ASSERT_TRUE(charges.ok());
  EXPECT_EQ((*charges)[1].amount(), 4096u);
  const absl::Status no_heap = Charge::TakeAll(session, {{Resource::kRings, 1}, {Resource::kHeapBytes, 4096}}).status();
  EXPECT_THAT(no_heap, FailsWith(ErrorReason::QUOTA_HEAP_BYTES));
  EXPECT_EQ(ErrorInfoOf(no_heap).used, cost) << "without the call that was refused";
  EXPECT_EQ(ErrorInfoOf(no_heap).requested, cost) << "all of it";
  EXPECT_THAT(Charge::TakeAll(session, {{Resource::kRegions, 1}, {Resource::kRings, 2}}).status(),
              FailsWith(ErrorReason::QUOTA_RINGS));
  for (const auto& ledger : {session, node}) {
    EXPECT_EQ(ledger->used(Resource::kRings), 1u);
    EXPECT_EQ(ledger->used(Resource::kRegions), 0u);
    EXPECT_EQ(ledger->used(Resource::kHeapBytes), cost);
  }
}

TEST(Ledger, ResourcesDoNotMix) {
  const auto ledger = LedgerWith(Resource::kRegions, 1);
  EXPECT_TRUE(ledger->Take(Resource::kAdapters, 50).ok());
  EXPECT_TRUE(ledger->Take(Resource::kRegions, 1).ok());
  EXPECT_EQ(ledger->used(Resource::kAdapters), 50u);
}

TEST(Ledger, RacingTakersNeverPassTheLimit) {
  const auto node = LedgerWith(Resource::kPinnedBytes, 1000);
  std::atomic<uint64_t> most{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&node, &most] {
      const auto session = LedgerWith(Resource::kPinnedBytes, 700, node);
      for (int round = 0; round < 2000; ++round) {
        auto charge = Charge::Take(session, Resource::kPinnedBytes, 300);
        uint64_t seen = node->used(Resource::kPinnedBytes);
        uint64_t before = most.load();
        while (seen > before && !most.compare_exchange_weak(before, seen)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(most.load(), 1000u);
  EXPECT_EQ(node->used(Resource::kPinnedBytes), 0u);
}

TEST(Ledger, AChangedLimitCountsFromTheNextTakeOn) {
  const auto ledger = LedgerWith(Resource::kRegions, 2);
  ASSERT_TRUE(ledger->Take(Resource::kRegions, 2).ok());
  EXPECT_FALSE(ledger->Take(Resource::kRegions, 1).ok());
  ledger->SetLimits(LimitOf(Resource::kRegions, 5));
  EXPECT_EQ(ledger->limit(Resource::kRegions), 5u);
  EXPECT_TRUE(ledger->Take(Resource::kRegions, 3).ok());
  ledger->SetLimits({});
  EXPECT_TRUE(ledger->Take(Resource::kRegions, 1000).ok()) << "0 means no limit";
}

TEST(Ledger, WhatIsHeldAboveALoweredLimitStaysAndNothingIsAdded) {
  const auto node = LedgerWith(Resource::kRegions, 0);
  const auto tenant = LedgerWith(Resource::kRegions, 10, node);
  ASSERT_TRUE(tenant->Take(Resource::kRegions, 8).ok());
  tenant->SetLimits(LimitOf(Resource::kRegions, 4));
  EXPECT_EQ(tenant->used(Resource::kRegions), 8u);
  const absl::Status refused = tenant->Take(Resource::kRegions, 1);
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_REGIONS));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 4u);
  EXPECT_EQ(ErrorInfoOf(refused).used, 8u);
  EXPECT_EQ(node->used(Resource::kRegions), 8u);
  tenant->Give(Resource::kRegions, 4);
  EXPECT_FALSE(tenant->Take(Resource::kRegions, 1).ok());
  tenant->Give(Resource::kRegions, 1);
  EXPECT_TRUE(tenant->Take(Resource::kRegions, 1).ok());
}

TEST(Ledger, AloneMeansThatTheParentIsNotCharged) {
  const auto node = LedgerWith(Resource::kPinnedBytes, 5);
  const auto session = LedgerWith(Resource::kPinnedBytes, 10, node);
  EXPECT_TRUE(session->TakeAlone(Resource::kPinnedBytes, 9).ok());
  EXPECT_EQ(node->used(Resource::kPinnedBytes), 0u);
  EXPECT_THAT(session->TakeAlone(Resource::kPinnedBytes, 2), FailsWith(ErrorReason::QUOTA_PINNED_BYTES));
  session->GiveAlone(Resource::kPinnedBytes, 9);
  EXPECT_EQ(session->used(Resource::kPinnedBytes), 0u);
  EXPECT_EQ(node->used(Resource::kPinnedBytes), 0u);
}

// Sessions of one tenant charge and refund while its limit changes: no count is lost, and none was ever above the
// highest limit.
TEST(Ledger, LimitsMayChangeWhileOthersTakeAndGive) {
  constexpr uint64_t kHighest = 1000;
  const auto node = LedgerWith(Resource::kPinnedBytes, 0);
  const auto tenant = LedgerWith(Resource::kPinnedBytes, kHighest, node);
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (uint64_t index = 0; index < 8; ++index) {
    threads.emplace_back([&, index] {
      const auto session = LedgerWith(Resource::kPinnedBytes, 0, tenant);
      for (uint64_t round = 0; round < 2000; ++round) {
        if (round % 16 == index) {
          tenant->SetLimits(LimitOf(Resource::kPinnedBytes, round % 32 == index ? kHighest : kHighest / 4));
        }
        const auto charge = Charge::Take(session, Resource::kPinnedBytes, 150);
        taken += charge.ok() ? 1 : 0;
        EXPECT_LE(tenant->used(Resource::kPinnedBytes), kHighest);
      }
      EXPECT_EQ(session->used(Resource::kPinnedBytes), 0u);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(taken, 100u);
  EXPECT_EQ(tenant->used(Resource::kPinnedBytes), 0u);
  EXPECT_EQ(node->used(Resource::kPinnedBytes), 0u);
}

TEST(Charge, IsGivenBackOnceHoweverOftenItMoves) {
  const auto ledger = LedgerWith(Resource::kRegions, 0);
  {
    absl::StatusOr<Charge> first = Charge::Take(ledger, Resource::kRegions, 5);
    ASSERT_TRUE(first.ok());
    Charge second = *std::move(first);
    Charge third;
    third = std::move(second);
    EXPECT_EQ(third.amount(), 5u);
    EXPECT_EQ(second.amount(), 0u);  // NOLINT(bugprone-use-after-move): the test is about the moved-from charge.
    EXPECT_EQ(ledger->used(Resource::kRegions), 5u);
  }
  EXPECT_EQ(ledger->used(Resource::kRegions), 0u);
}

TEST(Charge, AssigningGivesTheOldAmountBack) {
  const auto ledger = LedgerWith(Resource::kRegions, 0);
  Charge charge = *Charge::Take(ledger, Resource::kRegions, 5);
  charge = *Charge::Take(ledger, Resource::kRegions, 2);
  EXPECT_EQ(ledger->used(Resource::kRegions), 2u);
  charge.Refund();
  charge.Refund();
  EXPECT_EQ(ledger->used(Resource::kRegions), 0u);
}

TEST(Charge, AdjustingTakesOrGivesOnlyTheDifference) {
  const auto node = LedgerWith(Resource::kCqEntries, 100);
  const auto session = LedgerWith(Resource::kCqEntries, 0, node);
  Charge charge = *Charge::Take(session, Resource::kCqEntries, 60);
  ASSERT_TRUE(charge.Adjust(90).ok()) << "60 and 90 together would not fit";
  EXPECT_EQ(node->used(Resource::kCqEntries), 90u);
  ASSERT_TRUE(charge.Adjust(10).ok());
  EXPECT_EQ(charge.amount(), 10u);
  EXPECT_EQ(session->used(Resource::kCqEntries), 10u);
  EXPECT_EQ(node->used(Resource::kCqEntries), 10u);
  charge.Refund();
  EXPECT_EQ(node->used(Resource::kCqEntries), 0u);
}

TEST(Charge, AnAdjustmentAboveTheLimitChangesNothing) {
  const auto ledger = LedgerWith(Resource::kCqEntries, 100);
  Charge charge = *Charge::Take(ledger, Resource::kCqEntries, 60);
  const absl::Status refused = charge.Adjust(101);
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_CQ_ENTRIES));
  EXPECT_EQ(ErrorInfoOf(refused).requested, 41u);
  EXPECT_EQ(charge.amount(), 60u);
  EXPECT_EQ(ledger->used(Resource::kCqEntries), 60u);
}

TEST(Charge, AnEmptyOneStaysEmpty) {
  Charge charge;
  EXPECT_TRUE(charge.Adjust(7).ok());
  EXPECT_EQ(charge.amount(), 0u);
}

TEST(Charge, KeepsItsLedgerAlive) {
  const auto node = LedgerWith(Resource::kRegions, 0);
  Charge charge;
  {
    const auto session = LedgerWith(Resource::kRegions, 0, node);
    charge = *Charge::Take(session, Resource::kRegions, 1);
  }
  EXPECT_EQ(node->used(Resource::kRegions), 1u);
  charge.Refund();
  EXPECT_EQ(node->used(Resource::kRegions), 0u);
}

}  // namespace
}  // namespace rnicd::core
