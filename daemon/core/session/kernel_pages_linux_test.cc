// Core on kernels with pages of 16 and 64 KiB, which some of arm64 have: with the software card everything works that
// works with pages of 4 KiB, and memory is charged in whole pages of the kernel.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/memory/fresh_memory.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/core/memory/populating.h"
#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

// No whole number of pages of 16 or 64 KiB.
constexpr uint64_t kOddPages = 21;
constexpr uint64_t kOddBytes = kOddPages * kPage;

uint64_t RoundedUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

class KernelPages : public ::testing::TestWithParam<uint64_t> {
 protected:
  KernelPages() { node_.world.os.UseKernelPages(GetParam()); }

  FaultyOs& os() { return node_.world.os; }
  QueueOwner& owner() { return node_.owner; }
  uint64_t Used(Resource resource) { return owner().session->ledger().used(resource); }
  std::shared_ptr<MemoryObject> Object(MemoryObjectId id) { return *owner().session->Begin()->memory().Find(id); }
  // The bytes of sealed memory, which its owner and its cards see.
  std::span<std::byte> Bytes(MemoryObjectId id) { return Object(id)->BeginUse()->object().mapping(); }

  Connected node_;
};

TEST_P(KernelPages, AllocatedMemoryHasItsSizeAndIsChargedForWholePages) {
  const auto allocated = owner().TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok()) << allocated.status();
  EXPECT_EQ(Used(Resource::kMemoryBytes), GetParam());
  EXPECT_EQ(allocated->page_bytes, kPage) << "the kernel's smallest";
  const MemoryObjectId odd = owner().Memory(kOddPages);
  EXPECT_EQ(Bytes(odd).size(), kOddBytes);
  EXPECT_EQ(Used(Resource::kMemoryBytes), GetParam() + RoundedUp(kOddBytes, GetParam()));
  node_.world.End(owner().session);
  EXPECT_EQ(Used(Resource::kMemoryBytes), 0u);
}

TEST_P(KernelPages, AQuotaCountsWholePages) {
  WorldOptions options;
  options.limits.session[Resource::kMemoryBytes] = GetParam();
  World world(options);
  world.os.UseKernelPages(GetParam());
  Owner small(world);
  EXPECT_TRUE(small.TryAllocate({.size = kPage}).ok());
  EXPECT_THAT(small.TryAllocate({.size = kPage}).status(), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
}

TEST_P(KernelPages, ImportedMemoryOfAnySizeIsTakenAndItsHolesAreFilled) {
  absl::StatusOr<UniqueFd> file = os().CreateMemoryFile(kOddBytes, kPage);
  ASSERT_TRUE(os().Reserve(file->get(), 0, kPage).ok());
  const auto imported = owner().session->Begin()->memory().Import(kOddBytes);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto memory = Object(imported->memory);
  ASSERT_TRUE(memory->Attach(ImportedFile(*std::move(file))).ok());
  ASSERT_TRUE(memory->Seal().ok());
  EXPECT_EQ(os().Inspect(memory->file())->populated_bytes, RoundedUp(kOddBytes, GetParam()));
  EXPECT_EQ(Used(Resource::kMemoryBytes), RoundedUp(kOddBytes, GetParam()));
}

TEST_P(KernelPages, RegionsOfSinglePagesOfNdkAreReachedByPeers) {
  const MemoryObjectId memory = owner().Memory(8);
  // The third page of one kernel page, at an address that is congruent modulo 4 KiB only.
  const MdlEntry entry{.memory_id = memory,
                       .byte_offset = 2 * kPage + 8,
                       .byte_count = kPage,
                       .virtual_address = {kRegionBase + 5 * kPage + 8}};
  const MemoryRegionId region = owner().Region(owner().domain);
  const auto registered = owner().session->Begin()->regions().Register(
      {.region = region, .chain = {&entry, 1}, .length = kPage, .flags = kMrFlagLocalWrite | kMrFlagRemoteWrite}, {},
      [](const auto&) {});
  ASSERT_TRUE(registered.succeeded()) << registered.status();
  node_.peer.MustPost(node_.peer_pair, {Write({InlineSge("here")}, kRegionBase + 5 * kPage + 8,
                                              registered.outcome()->remote_token, kOpFlagInline)});
  EXPECT_EQ(node_.peer.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
  EXPECT_EQ(Bytes(memory)[2 * kPage + 8], std::byte{'h'});
}

TEST_P(KernelPages, AFastRegistrationMayNameSinglePagesOfNdkInAnyOrder) {
  const MemoryObjectId memory = owner().Memory(8);
  const std::vector<uint64_t> all = PagesOf(owner().Lam(memory, 8));
  const std::vector<uint64_t> pages = {all[5], all[0]};
  const RemoteToken token =
      owner().MustPost(node_.pair, {FastRegister(owner().FastRegion(), pages, kOpFlagRemoteWrite)});
  node_.peer.MustPost(node_.peer_pair, {Write({InlineSge("first")}, kRegionBase, token, kOpFlagInline),
                                        Write({InlineSge("second")}, kRegionBase + kPage, token, kOpFlagInline)});
  EXPECT_EQ(node_.peer.Statuses(), std::vector<NtStatus>(2, NtStatus::kSuccess));
  EXPECT_EQ(Bytes(memory)[5 * kPage], std::byte{'f'});
  EXPECT_EQ(Bytes(memory)[0], std::byte{'s'});
}

TEST_P(KernelPages, AMappedQueueIsChargedForWholePages) {
  const uint64_t before = Used(Resource::kHeapBytes);
  const auto created =
      owner().session->Begin()->queues().CreateMapped({.adapter = owner().adapter, .depth = 4, .depth_max = 4});
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_GE(Used(Resource::kHeapBytes), before + GetParam());
}

TEST_P(KernelPages, APoolKeepsWholePagesAndServesPartsOfThem) {
  const PoolClass odd{.pages = {}, .file_bytes = kOddBytes, .files = 2};
  MemoryPool pool(os(), node_.world.ledger, {odd});
  while (pool.RefillPiece().bytes != 0) {
  }
  EXPECT_EQ(pool.state().classes[0].wanted.file_bytes, RoundedUp(kOddBytes, GetParam()));
  EXPECT_EQ(node_.world.ledger->used(Resource::kMemoryBytes), 2 * RoundedUp(kOddBytes, GetParam()));
  node_.world.node.pool = &pool;
  for (const uint64_t pages : {kOddPages, kOddPages + 2}) {
    const auto allocated = owner().TryAllocate({.size = pages * kPage});
    ASSERT_TRUE(allocated.ok()) << allocated.status();
    EXPECT_TRUE(allocated->from_pool);
    EXPECT_TRUE(FetchAndSeal(*Object(allocated->memory)).ok());
    EXPECT_EQ(Bytes(allocated->memory).size(), pages * kPage);
  }
  EXPECT_EQ(Used(Resource::kMemoryBytes), node_.world.ledger->used(Resource::kMemoryBytes));
  node_.world.End(owner().session);
  node_.world.node.pool = nullptr;
}

TEST_P(KernelPages, WhatIsMadeLongerInsideAPageIsPopulatedFromThatPageOn) {
  FreshMemory memory = *FreshMemory::Create(os(), kOddBytes, {});
  while (*memory.MakeNext(kPage)) {
  }
  ASSERT_TRUE(memory.FitTo(2 * kOddBytes).ok());
  while (*memory.MakeNext(kPage)) {
  }
  EXPECT_EQ(memory.populated(), 2 * kOddBytes);
  ASSERT_TRUE(memory.FitTo(3 * kOddBytes).ok());
  Populating work(
      os(),
      {.mapping = memory.mapping(), .page_bytes = kPage, .populated = memory.populated(), .fresh_file = memory.file()});
  EXPECT_EQ(work.RunPiece(), Populating::Next::kEnd);
  EXPECT_TRUE(work.status().ok()) << work.status();
  EXPECT_EQ(os().Inspect(memory.file())->populated_bytes, RoundedUp(3 * kOddBytes, GetParam()));
}

TEST_P(KernelPages, TheKernelOfTheseTestsRefusesWhatARealOneRefuses) {
  const UniqueFd file = *os().CreateMemoryFile(2 * GetParam(), kPage);
  const std::span<std::byte> mapping = *os().Map(file.get(), 2 * GetParam());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping.data()) % GetParam(), 0u);
  EXPECT_FALSE(os().Populate(mapping.subspan(kPage)).ok());
  EXPECT_FALSE(os().MapPages(mapping.subspan(kPage)).ok());
  EXPECT_FALSE(os().Unmap(mapping.subspan(kPage)).ok());
  EXPECT_TRUE(os().Populate(mapping.subspan(GetParam())).ok());
  EXPECT_TRUE(os().Unmap(mapping).ok());
  EXPECT_EQ(os().live_mappings(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, KernelPages, ::testing::Values(16 << 10, 64 << 10),
                         [](const auto& row) { return std::to_string(row.param >> 10) + "KiB"; });

}  // namespace
}  // namespace rnicd::core
