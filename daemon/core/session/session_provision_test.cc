// One request that makes registered regions of the ranges of a memory object.
#include "daemon/core/region/session_provision.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr VirtualAddress kAddress{0x7f0000000000};

class SessionProvisionTest : public ::testing::Test {
 protected:
  static WorldOptions Options() {
    WorldOptions options = SlowFromTwoPages();
    options.workers = 1;
    options.limits.session[Resource::kPendingRequests] = 1;
    return options;
  }

  // Allocated and fetched, not sealed.
  MemoryObjectId Attached(uint64_t pages) {
    const auto ticket = owner_.TryAllocate({.size = pages * kPage});
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE((*session().Begin()->memory().Find(ticket->memory))->DuplicateFile().ok());
    return ticket->memory;
  }
  // Ranges of a page each, one behind the other.
  static std::vector<ProvisionRange> Pages(uint64_t count) {
    std::vector<ProvisionRange> ranges;
    for (uint64_t page = 0; page < count; ++page) {
      ranges.push_back({.byte_offset = page * kPage,
                        .length = kPage,
                        .address = {kAddress.value + page * kPage},
                        .flags = kMrFlagRemoteWrite});
    }
    return ranges;
  }
  MaybePending<Provisioned> Begin(MemoryObjectId memory, std::vector<ProvisionRange> ranges) {
    return session().Begin()->regions().Provision(
        {.memory = memory, .domain = domain_, .ranges = std::move(ranges)},
        [this](const absl::StatusOr<Provisioned>& provisioned) { provisioned_.Set(provisioned); });
  }
  absl::StatusOr<Provisioned> Provision(MemoryObjectId memory, std::vector<ProvisionRange> ranges) {
    const MaybePending<Provisioned> begun = Begin(memory, std::move(ranges));
    return begun.pending() ? provisioned_.Get().value_or(absl::DeadlineExceededError("never answered"))
                           : begun.outcome();
  }
  Session& session() { return *owner_.session; }
  uint64_t Used(Resource resource) { return world_.ledger->used(resource); }

  World world_{Options()};
  Owner owner_{world_};
  ProtectionDomainId domain_ = owner_.Domain();
  Awaited<absl::StatusOr<Provisioned>> provisioned_;
};

TEST_F(SessionProvisionTest, SealsAndRegistersEachRangeWithItsOwnTokens) {
  const MemoryObjectId memory = Attached(3);
  const auto provisioned = Provision(memory, Pages(3));
  ASSERT_TRUE(provisioned.ok()) << provisioned.status();
  EXPECT_EQ(provisioned->size, 3 * kPage);
  EXPECT_EQ(provisioned->page_bytes, kPage);
  ASSERT_EQ(provisioned->outcomes.size(), 3u);
  for (const auto& region : provisioned->outcomes) {
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(*session().Begin()->regions().GetLocalToken(region->id), region->local_token);
    EXPECT_EQ(*session().Begin()->regions().GetRemoteToken(region->id), region->remote_token);
  }
  EXPECT_EQ(Used(Resource::kRegions), 3u);
  EXPECT_EQ(Used(Resource::kRegisteredBytes), 3 * kPage);
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  EXPECT_EQ(world_.observer.counts().registered, 3u);
}

TEST_F(SessionProvisionTest, FewSmallRangesOfSealedMemoryAreAnsweredInline) {
  const MemoryObjectId memory = owner_.Memory(4);
  const BusyWorkers busy(*world_.workers, 1);
  const MaybePending<Provisioned> begun = Begin(memory, Pages(1));
  ASSERT_TRUE(begun.succeeded()) << begun.status();
  EXPECT_TRUE(begun.outcome()->outcomes[0].ok());
}

TEST_F(SessionProvisionTest, LargeRangesPendAndCountAsOnePendingRequest) {
  const MemoryObjectId memory = owner_.Memory(4);
  {
    const BusyWorkers busy(*world_.workers, 1);
    ASSERT_TRUE(Begin(memory, Pages(4)).pending());
    EXPECT_EQ(Used(Resource::kPendingRequests), 1u);
    EXPECT_THAT(Begin(memory, Pages(4)).status(), FailsWith(ErrorReason::QUOTA_PENDING_REQUESTS));
  }
  const auto provisioned = provisioned_.Get().value_or(absl::DeadlineExceededError(""));
  ASSERT_TRUE(provisioned.ok()) << provisioned.status();
  EXPECT_EQ(provisioned->outcomes.size(), 4u);
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
}

TEST_F(SessionProvisionTest, ARangeThatIsRefusedLeavesNothingAndTheOthersStay) {
  std::vector<ProvisionRange> ranges = Pages(6);
  ranges[0].length = 0;
  ranges[1].byte_offset = 4 * kPage;
  ranges[2].address = {0};
  ranges[3].flags = 1U << 31;
  ranges[4].length = UINT64_MAX;
  ranges[5].byte_offset += 1;
  ranges.push_back(Pages(1)[0]);
  const auto provisioned = Provision(Attached(4), ranges);
  ASSERT_TRUE(provisioned.ok()) << provisioned.status();
  ASSERT_EQ(provisioned->outcomes.size(), 7u);
  const auto status = [&](size_t range) { return provisioned->outcomes[range].status(); };
  EXPECT_THAT(status(0), FailsAt(ErrorReason::LENGTH_ZERO, "length"));
  EXPECT_THAT(status(1), FailsAt(ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "length"));
  EXPECT_THAT(status(2), FailsAt(ErrorReason::MDL_ADDRESS_ZERO, "virtual_address"));
  EXPECT_THAT(status(3), FailsAt(ErrorReason::FLAGS_UNKNOWN, "flags"));
  EXPECT_THAT(status(4), FailsAt(ErrorReason::MDL_RANGE_OVERFLOW, "virtual_address"));
  EXPECT_THAT(status(5), FailsAt(ErrorReason::MDL_NOT_PAGE_CONGRUENT, "byte_offset"));
  EXPECT_TRUE(status(6).ok());
  EXPECT_EQ(Used(Resource::kRegions), 1u);
  EXPECT_EQ(Used(Resource::kRegisteredBytes), kPage);
  EXPECT_EQ(world_.observer.counts().registration_failures.size(), 6u);
}

TEST_F(SessionProvisionTest, ACardThatRefusesLeavesNoRegionEither) {
  world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_MEMLOCK_LIMIT), 1);
  const auto provisioned = Provision(Attached(2), Pages(2));
  ASSERT_TRUE(provisioned.ok()) << provisioned.status();
  EXPECT_THAT(provisioned->outcomes[0].status(), FailsWith(ErrorReason::DEVICE_MEMLOCK_LIMIT));
  EXPECT_TRUE(provisioned->outcomes[1].ok());
  EXPECT_EQ(Used(Resource::kRegions), 1u);
  EXPECT_EQ(session().Begin()->regions().table().All().size(), 1u);
}

TEST_F(SessionProvisionTest, WhatIsRefusedWholeChangesNothing) {
  const MemoryObjectId memory = Attached(1);
  const auto with = [&](MemoryObjectId object, ProtectionDomainId domain) {
    return session()
        .Begin()
        ->regions()
        .Provision({.memory = object, .domain = domain, .ranges = Pages(1)},
                   [](const absl::StatusOr<Provisioned>& /*provisioned*/) {})
        .status();
  };
  EXPECT_THAT(with(MemoryObjectId{7}, domain_), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "memory_id"));
  EXPECT_THAT(with(memory, ProtectionDomainId{7}), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "pd_id"));
  const auto ticket = owner_.TryAllocate({.size = kPage});
  EXPECT_THAT(with(ticket->memory, domain_), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  world_.node.draining.store(true);
  EXPECT_THAT(with(memory, domain_), FailsWith(ErrorReason::DAEMON_DRAINING));
  world_.node.draining.store(false);
  EXPECT_EQ(Used(Resource::kRegions), 0u);
  EXPECT_THAT((*session().Begin()->memory().Find(memory))->BeginUse().status(),
              FailsWith(ErrorReason::MEMORY_NOT_SEALED));
}

TEST_F(SessionProvisionTest, AFailedSealIsTheErrorOfTheCallAndMayBeRetried) {
  const MemoryObjectId memory = Attached(1);
  world_.os.FailNext("AddSeals", MakeError(ErrorReason::MEMORY_SEAL_REFUSED), 1);
  EXPECT_THAT(Provision(memory, Pages(1)).status(), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  const auto again = Provision(memory, Pages(1));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->outcomes[0].ok());
}

TEST_F(SessionProvisionTest, TheEndOfTheSessionCancelsWhatNoWorkerHasBegun) {
  const MemoryObjectId memory = owner_.Memory(4);
  const BusyWorkers busy(*world_.workers, 1);
  ASSERT_TRUE(Begin(memory, Pages(4)).pending());
  world_.End(owner_.session);
  EXPECT_THAT(provisioned_.Get().value_or(absl::DeadlineExceededError("")).status(),
              FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(world_.Held(), "");
}

TEST_F(SessionProvisionTest, DroppedRegionsAreClosed) {
  const auto provisioned = Provision(Attached(3), Pages(3));
  ASSERT_TRUE(provisioned.ok());
  session().Begin()->regions().Drop(*provisioned);
  EXPECT_EQ(Used(Resource::kRegions), 0u);
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
}

}  // namespace
}  // namespace rnicd::core
