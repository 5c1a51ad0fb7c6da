#include "daemon/core/session/session.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

absl::Status Release(const std::shared_ptr<Session>& session, MemoryObjectId id) {
  return Owner::Await([&](const Done<>& done) { return session->Begin()->memory().Release(id, done); });
}

TEST(Session, EveryStepIsCountedAndGivenBack) {
  World world;
  Owner owner(world);
  const AdapterId adapter = owner.Adapter();
  const ProtectionDomainId domain = owner.Domain(adapter);
  const MemoryRegionId region = owner.Region(domain);
  const MemoryObjectId memory = owner.Memory(2);
  ASSERT_TRUE(owner.Register(region, memory, 2 * kPage).ok());
  EXPECT_EQ(world.Held(),
            "sessions=1 adapters=1 protection_domains=1 memory_objects=1 memory_bytes=8192 regions=1 pinned_bytes=8192 "
            "registered_bytes=8192 ");
  EXPECT_THAT(Release(owner.session, memory), FailsAt(ErrorReason::MEMORY_IN_USE, "memory_id"));
  EXPECT_TRUE(owner.Deregister(region).ok());
  EXPECT_TRUE(Release(owner.session, memory).ok());
  EXPECT_TRUE(owner.Close(region).ok());
  const PendingChoice wait;
  EXPECT_TRUE(Owner::Await([&](const Done<>& done) {
                return owner.session->Begin()->domains().Close(domain, wait, done);
              }).ok());
  EXPECT_TRUE(
      Owner::Await([&](const Done<>& done) { return owner.session->Begin()->adapters().Close(adapter, done); }).ok());
  EXPECT_EQ(world.Held(), "sessions=1 ");
  EXPECT_EQ(world.os.live_mappings(), 0u);
}

TEST(Session, TheIdsOfAnotherSessionNameNothing) {
  World world;
  Owner owner(world, 1);
  Owner other(world, 2);
  const AdapterId adapter = other.Adapter();
  const ProtectionDomainId domain = other.Domain(adapter);
  const MemoryRegionId region = other.Region(domain);
  const MemoryObjectId memory = other.Memory(1);
  ASSERT_TRUE(other.Register(region, memory, kPage).ok());
  const auto mine = owner.session->Begin();
  ASSERT_TRUE(mine.ok());
  const auto absent = [](const char* field) { return FailsAt(ErrorReason::OBJECT_NOT_FOUND, std::string(field)); };
  EXPECT_THAT(mine->adapters().QueryInfo(adapter).status(), absent("adapter_id"));
  EXPECT_THAT(mine->adapters().Close(adapter, nullptr).status(), absent("adapter_id"));
  EXPECT_THAT(mine->domains().Create(adapter).status(), absent("adapter_id"));
  EXPECT_THAT(mine->domains().Close(domain, {}, nullptr).status(), absent("pd_id"));
  EXPECT_THAT(mine->regions().Create(domain, false).status(), absent("pd_id"));
  EXPECT_THAT(mine->memory().Find(memory).status(), absent("memory_id"));
  EXPECT_THAT(mine->memory().Release(memory, nullptr).status(), absent("memory_id"));
  EXPECT_THAT(mine->regions().Deregister(region, {}, nullptr).status(), absent("mr_id"));
  EXPECT_THAT(mine->regions().Close(region, {}, nullptr).status(), absent("mr_id"));
  EXPECT_THAT(mine->regions().GetLocalToken(region).status(), absent("mr_id"));
  EXPECT_THAT(mine->regions().GetRemoteToken(region).status(), absent("mr_id"));
  EXPECT_THAT(owner.Register(region, memory, kPage).status(), absent("mr_id"));
  EXPECT_THAT(owner.Register(owner.Region(), memory, kPage).status(), absent("mdl_chain[0].memory_id"));
  EXPECT_THAT(mine->regions().GetLocalToken(MemoryRegionId{}).status(), absent("mr_id"));
  EXPECT_TRUE(other.session->Begin()->regions().GetLocalToken(region).ok()) << "and nothing happened to them";
}

TEST(Session, AnUnknownAdapterOrVersionIsRefusedAndNotCounted) {
  World world;
  Owner owner(world);
  EXPECT_THAT(owner.session->Begin()->adapters().Open("soft1", {1, 2}).status(),
              FailsWith(ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_THAT(owner.session->Begin()->adapters().Open("", {1, 2}).status(), FailsWith(ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_THAT(owner.session->Begin()->adapters().Open("soft0", {2, 0}).status(),
              FailsWith(ErrorReason::NDK_VERSION_UNSUPPORTED));
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

TEST(Session, AnAdapterReportsItsLimits) {
  WorldOptions options;
  options.soft.max_registration_bytes = 1 << 20;
  World world(options);
  Owner owner(world);
  const auto info = owner.session->Begin()->adapters().QueryInfo(owner.Adapter());
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->max_registration_size, 1u << 20);
  EXPECT_EQ(info->version, (NdkVersion{1, 2}));
}

TEST(Session, CloseAdapterWaitsForItsDomains) {
  World world;
  Owner owner(world);
  const AdapterId adapter = owner.Adapter();
  const ProtectionDomainId domain = owner.Domain(adapter);
  Awaited<absl::Status> closed;
  EXPECT_TRUE(owner.session->Begin()
                  ->adapters()
                  .Close(adapter, [&](const absl::Status& status) { closed.Set(status); })
                  .pending());
  EXPECT_THAT(owner.session->Begin()->domains().Create(adapter).status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_THAT(owner.session->Begin()->adapters().QueryInfo(adapter).status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_THAT(owner.session->Begin()->adapters().Close(adapter, nullptr).status(),
              FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_EQ(closed.times(), 0);
  EXPECT_TRUE(owner.session->Begin()->domains().Close(domain, {}, nullptr).succeeded());
  EXPECT_TRUE(closed.Get().value_or(absl::UnknownError("never")).ok());
  EXPECT_EQ(closed.times(), 1);
  EXPECT_THAT(owner.session->Begin()->domains().Create(adapter).status(), FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

TEST(Session, ClosePdWaitsForItsRegions) {
  World world;
  Owner owner(world);
  const ProtectionDomainId domain = owner.Domain();
  const MemoryRegionId region = owner.Region(domain);
  ASSERT_TRUE(
      owner.session->Begin()->domains().Close(domain, {.to_events = true, .request_context = 77}, nullptr).pending());
  EXPECT_THAT(owner.session->Begin()->regions().Create(domain, false).status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_THAT(owner.session->Begin()->domains().Close(domain, {}, nullptr).status(),
              FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_FALSE(owner.session->events().Pop().has_value());
  ASSERT_TRUE(owner.Close(region).ok());
  const auto event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  const auto& completed = std::get<RequestCompleted>(event->body);
  EXPECT_EQ(completed.kind, RequestKind::kClosePd);
  EXPECT_EQ(completed.request_context, 77u);
  EXPECT_EQ(completed.object_id, domain.value);
  EXPECT_TRUE(completed.status.ok());
}

TEST(Session, ACardWithoutRoomForADomainLeavesNothingCounted) {
  World world;
  Owner owner(world);
  const AdapterId adapter = owner.Adapter();
  world.plan.FailCreateProtectionDomain(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), 1);
  EXPECT_THAT(owner.session->Begin()->domains().Create(adapter).status(),
              FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(world.Held(), "sessions=1 adapters=1 ");
}

TEST(Session, SizesThatAreNoMemoryAreRefused) {
  World world;
  Owner owner(world);
  const uint64_t huge = uint64_t{1} << 63;
  const std::pair<AllocateArguments, ErrorReason> rows[] = {
      {{.size = 0}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.size = kPage + 1}, ErrorReason::MEMORY_SIZE_UNALIGNED},
      {{.size = kPage, .page_bytes = 2 << 20}, ErrorReason::MEMORY_SIZE_UNALIGNED},
      {{.size = huge}, ErrorReason::FIELD_OUT_OF_RANGE},
      {{.size = UINT64_MAX}, ErrorReason::MEMORY_SIZE_UNALIGNED},
  };
  for (const auto& [arguments, reason] : rows) {
    EXPECT_THAT(owner.TryAllocate(arguments).status(), FailsAt(reason, "size")) << arguments.size;
  }
  EXPECT_THAT(owner.session->Begin()->memory().Import(0).status(), FailsWith(ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_THAT(owner.session->Begin()->memory().Import(1).status(), FailsWith(ErrorReason::MEMORY_SIZE_UNALIGNED));
  EXPECT_THAT(owner.session->Begin()->memory().Import(huge).status(), FailsWith(ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

TEST(Session, MoreMemoryThanAddressSpaceIsUnavailable) {
  World world;
  Owner owner(world);
  EXPECT_THAT(owner.TryAllocate({.size = uint64_t{1} << 62}).status(),
              FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE));
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

// A client that is refused for lack of pages retries at once with less: its failed request must not count against it.
TEST(Session, AFailedAllocationHasGivenEverythingBackWhenItAnswers) {
  World world;
  Owner owner(world);
  for (const char* const method : {"CreateMemoryFile", "AddSeals", "Map", "Populate"}) {
    world.os.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    Awaited<std::string> held;
    ASSERT_TRUE(owner.session->Begin()
                    ->memory()
                    .Allocate({.size = kPage},
                              [&](const absl::StatusOr<MemoryTicket>& outcome) {
                                EXPECT_THAT(outcome.status(), FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE));
                                held.Set(world.Held());
                              })
                    .ok());
    EXPECT_EQ(held.Get(), "sessions=1 ") << method;
    EXPECT_EQ(world.os.live_mappings(), 0u);
  }
}

TEST(Session, AnUnknownNumaNodeIsRefused) {
  World world;
  Owner owner(world);
  EXPECT_THAT(owner.TryAllocate({.size = kPage, .numa_node = 4096}).status(),
              FailsAt(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node"));
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

TEST(Session, UnknownFlagsAreRefusedBeforeAnythingIsTaken) {
  World world;
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  const MdlEntry entry{.memory_id = owner.Memory(1), .byte_count = kPage, .virtual_address = {kPage}};
  const auto with_flags = [&](uint32_t flags) {
    return owner.session->Begin()
        ->regions()
        .Register({.region = region, .chain = {&entry, 1}, .length = kPage, .flags = flags}, {}, nullptr)
        .status();
  };
  EXPECT_THAT(with_flags(0x10), FailsWith(ErrorReason::FLAGS_UNKNOWN));
  EXPECT_THAT(with_flags(0x4), FailsWith(ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE));
  EXPECT_TRUE(with_flags(0).ok());
  EXPECT_EQ(world.observer.counts().registration_failures.size(), 2u) << "refusals are reported too";
}

TEST(Session, DeviceFailuresOfARegistrationReachTheCallerAndLeaveNothing) {
  World world;
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  const MemoryObjectId memory = owner.Memory(1);
  const std::string before = world.Held();
  for (const ErrorReason reason :
       {ErrorReason::DEVICE_FAILED, ErrorReason::DEVICE_NOT_CAPABLE, ErrorReason::DEVICE_OUT_OF_RESOURCES}) {
    world.plan.FailRegister(MakeError(reason), 1);
    EXPECT_THAT(owner.Register(region, memory, kPage).status(), FailsWith(reason));
    EXPECT_EQ(world.Held(), before);
  }
  ASSERT_TRUE(owner.Register(region, memory, kPage).ok());
  world.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_THAT(owner.Deregister(region), FailsWith(ErrorReason::DEVICE_FAILED));
  EXPECT_TRUE(owner.session->Begin()->regions().GetLocalToken(region).ok()) << "it is still registered";
}

TEST(Session, TokensAreCountedWhenTheyAreHandedOut) {
  World world;
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  EXPECT_FALSE(owner.session->Begin()->regions().GetLocalToken(region).ok());
  EXPECT_FALSE(owner.session->Begin()->regions().GetRemoteToken(region).ok());
  ASSERT_TRUE(owner.Register(region, owner.Memory(1), kPage).ok());
  EXPECT_TRUE(owner.session->Begin()->regions().GetLocalToken(region).ok());
  EXPECT_TRUE(owner.session->Begin()->regions().GetRemoteToken(region).ok());
  EXPECT_EQ(world.observer.counts().local_tokens, 2u);
  EXPECT_EQ(world.observer.counts().remote_tokens, 2u);
  ASSERT_TRUE(owner.Deregister(region).ok());
  EXPECT_EQ(world.observer.counts().revoked.at("deregister"), 1u);
}

TEST(Session, TokensOfARegionClosedWhileRegisteredAreCountedAsRevoked) {
  World world;
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  ASSERT_TRUE(owner.Register(region, owner.Memory(1), kPage).ok());
  ASSERT_TRUE(owner.Close(region).ok());
  EXPECT_EQ(world.observer.counts().revoked.at("close"), 1u);
  EXPECT_THAT(owner.Close(region), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "mr_id"));
}

TEST(Session, ViewsShowEveryRegionAndNoToken) {
  World world;
  Owner owner(world);
  const ProtectionDomainId domain = owner.Domain();
  const MemoryRegionId idle = owner.Region(domain);
  const MemoryRegionId busy = owner.Region(domain);
  ASSERT_TRUE(owner.Register(busy, owner.Memory(1), kPage).ok());
  const auto views = owner.session->ViewRegions();
  ASSERT_EQ(views.size(), 2u);
  for (const auto& [id, view] : views) {
    EXPECT_EQ(view.state, id == idle ? "created" : "registered");
  }
}

TEST(SessionQuota, AdaptersDomainsAndRegionsReportTheirFigures) {
  WorldOptions options;
  options.limits.session[Resource::kAdapters] = 1;
  options.limits.session[Resource::kProtectionDomains] = 2;
  options.limits.session[Resource::kRegions] = 3;
  World world(options);
  Owner owner(world);
  const AdapterId adapter = owner.Adapter();
  ExpectFigures(owner.session->Begin()->adapters().Open("soft0", {1, 2}).status(), ErrorReason::QUOTA_ADAPTERS, 1, 1,
                1);
  const ProtectionDomainId domain = owner.Domain(adapter);
  owner.Domain(adapter);
  ExpectFigures(owner.session->Begin()->domains().Create(adapter).status(), ErrorReason::QUOTA_PROTECTION_DOMAINS, 2, 2,
                1);
  const MemoryRegionId region = owner.Region(domain);
  owner.Region(domain);
  owner.Region(domain);
  ExpectFigures(owner.session->Begin()->regions().Create(domain, false).status(), ErrorReason::QUOTA_REGIONS, 3, 3, 1);
  ASSERT_TRUE(owner.Close(region).ok());
  EXPECT_TRUE(owner.session->Begin()->regions().Create(domain, false).ok());
}

TEST(SessionQuota, MemoryObjectsAndBytesReportTheirFigures) {
  WorldOptions options = WithSessionLimit(Resource::kMemoryObjects, 2);
  options.limits.session[Resource::kMemoryBytes] = 4 * kPage;
  World world(options);
  Owner owner(world);
  const MemoryObjectId memory = owner.Memory(3);
  ExpectFigures(owner.TryAllocate({.size = 2 * kPage}).status(), ErrorReason::QUOTA_MEMORY_BYTES, 4 * kPage, 3 * kPage,
                2 * kPage);
  EXPECT_TRUE(owner.session->Begin()->memory().Import(kPage).ok());
  ExpectFigures(owner.session->Begin()->memory().Import(kPage).status(), ErrorReason::QUOTA_MEMORY_OBJECTS, 2, 2, 1);
  ASSERT_TRUE(Release(owner.session, memory).ok());
  EXPECT_TRUE(owner.TryAllocate({.size = 3 * kPage}).ok());
}

TEST(SessionQuota, PinnedBytesCountWholePages) {
  World world(WithSessionLimit(Resource::kPinnedBytes, 2 * kPage));
  Owner owner(world);
  const ProtectionDomainId domain = owner.Domain();
  const MemoryObjectId memory = owner.Memory(4);
  ASSERT_TRUE(owner.Register(owner.Region(domain), memory, 1).ok());
  ExpectFigures(owner.Register(owner.Region(domain), memory, 2 * kPage + 1).status(), ErrorReason::QUOTA_PINNED_BYTES,
                2 * kPage, kPage, 2 * kPage);
  EXPECT_TRUE(owner.Register(owner.Region(domain), memory, kPage + 1).ok()) << "one page of it was counted already";
}

TEST(SessionQuota, TheNodesLimitHoldsAcrossSessions) {
  WorldOptions options;
  options.limits.node[Resource::kPinnedBytes] = 3 * kPage;
  World world(options);
  Owner first(world, 1, 1000);
  Owner second(world, 2, 2000);
  ASSERT_TRUE(first.Register(first.Region(), first.Memory(2), 2 * kPage).ok());
  const MemoryObjectId memory = second.Memory(2);
  const MemoryRegionId region = second.Region();
  ExpectFigures(second.Register(region, memory, 2 * kPage).status(), ErrorReason::QUOTA_PINNED_BYTES, 3 * kPage,
                2 * kPage, 2 * kPage);
  world.End(first.session);
  EXPECT_TRUE(second.Register(region, memory, 2 * kPage).ok());
}

}  // namespace
}  // namespace rnicd::core
