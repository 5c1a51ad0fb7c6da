#include "daemon/core/region/logical_mapping.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kMappedAddress = 0x7f0000000000;
constexpr uint64_t kMemoryPages = 8;

class LogicalMappingTest : public ::testing::Test {
 protected:
  LogicalMappingTest() : adapter_(OpenAdapter()), memory_(NewMemory()) {}

  std::shared_ptr<Adapter> OpenAdapter() {
    return std::make_shared<Adapter>("soft0", *world_.provider.OpenAdapter("soft0"), Charge());
  }
  std::shared_ptr<MemoryObject> NewMemory() { return NewMemory(world_.ledger); }
  std::shared_ptr<MemoryObject> NewMemory(const std::shared_ptr<Ledger>& owner) {
    auto memory = UnchargedMemory(world_.os, kMemoryPages * kPage, PinsOf(owner));
    EXPECT_TRUE(memory->Allocate({.page_bytes = kPage}).ok());
    EXPECT_TRUE(FetchAndSeal(*memory).ok());
    return memory;
  }
  static MappedRange RangeOf(const std::shared_ptr<MemoryObject>& memory, uint64_t offset, uint64_t bytes) {
    const MdlEntry entry{
        .memory_id = {1}, .byte_offset = offset, .byte_count = bytes, .virtual_address = {kMappedAddress + offset}};
    auto range = ResolveMdlChain({&entry, 1}, bytes, [&](MemoryObjectId) { return memory; });
    EXPECT_TRUE(range.ok()) << range.status();
    return *std::move(range);
  }
  std::shared_ptr<LogicalMapping> MappingOf(MappedRange range) {
    const auto fbo = static_cast<uint32_t>(range.base.value % kPage);
    auto pages = TakePages(std::move(range), adapter_->device(), world_.ledger);
    EXPECT_TRUE(pages.ok()) << pages.status();
    auto mapping = std::make_shared<LogicalMapping>(*Kept<Adapter>::Of(adapter_), std::move(pages->mapping),
                                                    std::move(pages->pages), fbo);
    space_.Insert(mapping);
    return mapping;
  }
  // Pages [first, first + count) of the memory.
  std::shared_ptr<LogicalMapping> Map(uint64_t first, uint64_t count) {
    return MappingOf(RangeOf(memory_, first * kPage, count * kPage));
  }
  static uint64_t Page(const LogicalMapping& mapping, uint64_t index) { return mapping.base().value + index * kPage; }

  absl::StatusOr<ResolvedPages> Resolve(const std::vector<uint64_t>& pages, uint64_t fbo, uint64_t length) const {
    return space_.ResolvePages(*adapter_, pages, fbo, length);
  }
  absl::StatusOr<ResolvedPages> Resolve(const std::vector<uint64_t>& pages) const {
    return Resolve(pages, 0, pages.size() * kPage);
  }
  absl::StatusOr<ResolvedPages> Bytes(uint64_t address, uint64_t length) const {
    return space_.ResolveBytes(*adapter_, LogicalAddress{address}, length);
  }
  // The runs as "offset+length" within the memory.
  std::string Runs(const absl::StatusOr<ResolvedPages>& resolved) const {
    std::string all;
    for (const std::span<std::byte> run : resolved.value().runs) {
      all += std::to_string(run.data() - memory_->mapping().data()) + "+" + std::to_string(run.size()) + " ";
    }
    return all;
  }

  World world_;
  std::shared_ptr<Adapter> adapter_;
  std::shared_ptr<MemoryObject> memory_;
  LogicalAddressSpace space_{12345};
};

TEST_F(LogicalMappingTest, PagesInOrderAreOneRun) {
  const auto mapping = Map(1, 3);
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 0), Page(*mapping, 1), Page(*mapping, 2)})), "4096+12288 ");
}

TEST_F(LogicalMappingTest, PagesMayComeInAnyOrderAndMoreThanOnce) {
  const auto mapping = Map(0, 3);
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 2), Page(*mapping, 0), Page(*mapping, 0), Page(*mapping, 1)})),
            "8192+4096 0+4096 0+8192 ");
}

TEST_F(LogicalMappingTest, PagesOfSeveralMappingsMix) {
  const auto low = Map(0, 2);
  const auto high = Map(4, 2);
  EXPECT_EQ(Runs(Resolve({Page(*high, 1), Page(*low, 1), Page(*high, 0), Page(*low, 0)})),
            "20480+4096 4096+4096 16384+4096 0+4096 ");
}

TEST_F(LogicalMappingTest, PagesThatMeetInMemoryAreOneRunAcrossMappings) {
  const auto first = Map(0, 2);
  const auto second = Map(2, 2);
  EXPECT_EQ(Runs(Resolve({Page(*first, 0), Page(*first, 1), Page(*second, 0)})), "0+12288 ");
}

TEST_F(LogicalMappingTest, TheFirstOffsetAndTheLengthCutTheEnds) {
  const auto mapping = Map(0, 2);
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 0), Page(*mapping, 1)}, 100, 5000)), "100+5000 ");
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 1), Page(*mapping, 0)}, 100, 5000)), "4196+3996 0+1004 ");
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 0)}, kPage - 1, 1)), "4095+1 ");
}

TEST_F(LogicalMappingTest, PagesBeyondTheLengthAreCheckedButNotUsed) {
  const auto mapping = Map(0, 2);
  EXPECT_EQ(Runs(Resolve({Page(*mapping, 0), Page(*mapping, 1)}, 0, 1)), "0+1 ");
  EXPECT_THAT(Resolve({Page(*mapping, 0), Page(*mapping, 2)}, 0, 1).status(),
              FailsAt(ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "adapter_page_array[1]"));
  EXPECT_THAT(Resolve({Page(*mapping, 0), Page(*mapping, 1) + 1}, 0, 1).status(),
              FailsAt(ErrorReason::LOGICAL_ADDRESS_UNALIGNED, "adapter_page_array[1]"));
}

TEST_F(LogicalMappingTest, AnAddressInsideAPageIsNotAPage) {
  const auto mapping = Map(0, 2);
  for (const uint64_t inside : {uint64_t{1}, uint64_t{8}, kPage - 1}) {
    EXPECT_THAT(Resolve({Page(*mapping, 0) + inside}).status(),
                FailsAt(ErrorReason::LOGICAL_ADDRESS_UNALIGNED, "adapter_page_array[0]"));
  }
}

TEST_F(LogicalMappingTest, AnAddressOfNoMappingIsUnknown) {
  const auto mapping = Map(0, 2);
  for (const uint64_t address : {uint64_t{0}, kPage, Page(*mapping, 0) - kPage, Page(*mapping, 2), -kPage}) {
    EXPECT_THAT(Resolve({Page(*mapping, 0), address}).status(),
                FailsAt(ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "adapter_page_array[1]"))
        << address;
    EXPECT_THAT(Bytes(address, 1).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN)) << address;
  }
}

TEST_F(LogicalMappingTest, APageOfNobodyLiesBetweenTwoMappings) {
  const auto first = Map(0, 2);
  const auto second = Map(2, 2);
  EXPECT_EQ(second->base().value, Page(*first, 3));
  EXPECT_FALSE(Resolve({Page(*first, 2)}).ok());
  EXPECT_TRUE(Bytes(Page(*first, 0), 2 * kPage).ok());
  EXPECT_THAT(Bytes(Page(*first, 1), kPage + 1).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
}

TEST_F(LogicalMappingTest, TheAddressesOfAnotherAdapterLeadNowhere) {
  const auto mapping = Map(0, 2);
  const auto other = OpenAdapter();
  const uint64_t page = Page(*mapping, 0);
  EXPECT_THAT(space_.ResolvePages(*other, {&page, 1}, 0, kPage).status(),
              FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
  EXPECT_THAT(space_.ResolveBytes(*other, mapping->base(), 1).status(),
              FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
}

TEST_F(LogicalMappingTest, ARemovedMappingLeadsNowhereAndItsAddressesAreNotUsedAgain) {
  const auto mapping = Map(0, 2);
  space_.Remove(*mapping);
  EXPECT_THAT(Resolve({Page(*mapping, 0)}).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
  EXPECT_THAT(Bytes(Page(*mapping, 0), 1).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
  const auto next = Map(0, 2);
  EXPECT_GT(next->base().value, Page(*mapping, 1));
}

TEST_F(LogicalMappingTest, BytesBeginAndEndAnywhereInTheirMapping) {
  const auto mapping = Map(1, 3);
  const uint64_t base = mapping->base().value;
  EXPECT_EQ(Runs(Bytes(base, 3 * kPage)), "4096+12288 ");
  EXPECT_EQ(Runs(Bytes(base + 100, 1)), "4196+1 ");
  EXPECT_EQ(Runs(Bytes(base + kPage - 1, kPage + 2)), "8191+4098 ");
  EXPECT_EQ(Runs(Bytes(base + 3 * kPage - 1, 1)), "16383+1 ");
  EXPECT_EQ(Runs(Bytes(base + 5, 0)), "");
  EXPECT_THAT(Bytes(base + 3 * kPage - 1, 2).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
  EXPECT_THAT(Bytes(base + 1, UINT64_MAX).status(), FailsWith(ErrorReason::LOGICAL_ADDRESS_UNKNOWN));
}

TEST_F(LogicalMappingTest, BytesCrossFromOneMemoryToAnother) {
  const auto other = NewMemory();
  const MdlEntry chain[] = {
      {.memory_id = {1}, .byte_offset = kPage, .byte_count = kPage, .virtual_address = {kMappedAddress}},
      {.memory_id = {2}, .byte_offset = 0, .byte_count = kPage, .virtual_address = {kMappedAddress + kPage}}};
  auto range = ResolveMdlChain(chain, 2 * kPage, [&](MemoryObjectId id) { return id.value == 1 ? memory_ : other; });
  ASSERT_TRUE(range.ok()) << range.status();
  const auto mapping = MappingOf(*std::move(range));
  const auto resolved = Bytes(mapping->base().value + kPage - 4, 8);
  ASSERT_TRUE(resolved.ok());
  ASSERT_EQ(resolved->runs.size(), 2u);
  EXPECT_EQ(resolved->runs[0].data(), memory_->mapping().data() + 2 * kPage - 4);
  EXPECT_EQ(resolved->runs[1].data(), other->mapping().data());
  EXPECT_EQ(resolved->runs[0].size() + resolved->runs[1].size(), 8u);
}

TEST_F(LogicalMappingTest, ARangeThatBeginsInsideAPageCountsThePagesItTouches) {
  const auto mapping = MappingOf(RangeOf(memory_, 2 * kPage - 1, 2));
  EXPECT_EQ(mapping->pages()->pages.size(), 2u);
  EXPECT_EQ(mapping->fbo(), kPage - 1);
  EXPECT_EQ(Runs(Bytes(mapping->base().value + mapping->fbo(), 2)), "8191+2 ");
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 logical_mappings=1 registered_bytes=8192 logical_pages=2 ");
}

TEST_F(LogicalMappingTest, ReleasedPagesStayChargedWhileSomethingResolvedUsesThem) {
  auto first = Map(0, 2);
  auto second = Map(4, 1);
  auto resolved = Resolve({Page(*first, 0), Page(*second, 0), Page(*first, 1)});
  ASSERT_TRUE(resolved.ok());
  space_.Remove(*first);
  space_.Remove(*second);
  first.reset();
  second.reset();
  EXPECT_EQ(world_.Held(), "pinned_bytes=12288 registered_bytes=12288 logical_pages=3 ");
  EXPECT_THAT(memory_->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  resolved->keep_alive.reset();
  EXPECT_EQ(world_.Held(), "");
  EXPECT_TRUE(memory_->Release().ok());
}

TEST_F(LogicalMappingTest, ABytesKeeperKeepsItsMappingsPages) {
  auto mapping = Map(0, 2);
  auto resolved = Bytes(mapping->base().value, 1);
  ASSERT_TRUE(resolved.ok());
  space_.Remove(*mapping);
  mapping.reset();
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 logical_pages=2 ");
  resolved->keep_alive.reset();
  EXPECT_EQ(world_.Held(), "");
}

TEST_F(LogicalMappingTest, HoldsItsAdapterOpenUntilItIsGone) {
  auto mapping = Map(0, 1);
  bool closed = false;
  ASSERT_EQ(*adapter_->Close([&] { closed = true; }), Closable::CloseResult::kPending);
  space_.Remove(*mapping);
  EXPECT_FALSE(closed);
  mapping.reset();
  EXPECT_TRUE(closed);
}

TEST_F(LogicalMappingTest, MorePagesThanAnAnswerHoldsAreRefusedBeforeTheyAreCharged) {
  EXPECT_THAT(TakePages({.pages = kMaxMappedPages + 1}, adapter_->device(), world_.ledger).status(),
              FailsAt(ErrorReason::PAGE_COUNT_UNSUPPORTED, "length"));
  EXPECT_EQ(world_.Held(), "");
}

TEST_F(LogicalMappingTest, PagesAboveTheOwnersLimitAreNotTaken) {
  Limits limits;
  limits[Resource::kPinnedBytes] = 2 * kPage;
  const auto ledger = std::make_shared<Ledger>(limits, nullptr);
  const auto memory = NewMemory(ledger);
  EXPECT_THAT(TakePages(RangeOf(memory, 0, 2 * kPage + 1), adapter_->device(), ledger).status(),
              FailsWith(ErrorReason::QUOTA_PINNED_BYTES));
  EXPECT_EQ(ledger->used(Resource::kPinnedBytes), 0u);
  EXPECT_EQ(ledger->used(Resource::kRegisteredBytes), 0u);
  EXPECT_TRUE(memory->Release().ok()) << "a refused range holds no memory";
}

TEST_F(LogicalMappingTest, AddressesArePageAlignedAndNotZeroWhateverTheSeed) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 61) - 1, UINT64_MAX}) {
    LogicalAddressSpace space(seed);
    auto pages = TakePages(RangeOf(memory_, 0, kPage), adapter_->device(), world_.ledger);
    const auto mapping = std::make_shared<LogicalMapping>(*Kept<Adapter>::Of(adapter_), std::move(pages->mapping),
                                                          std::move(pages->pages), 0);
    space.Insert(mapping);
    EXPECT_GT(mapping->base().value, kPage) << seed;
    EXPECT_EQ(mapping->base().value % kPage, 0u) << seed;
    EXPECT_LT(mapping->base().value, uint64_t{1} << 62) << seed;
  }
}

TEST_F(LogicalMappingTest, ALongArrayThatAlternatesBetweenManyMappingsIsResolved) {
  constexpr uint64_t kMappings = 2000;
  std::vector<std::shared_ptr<LogicalMapping>> mappings;
  std::vector<uint64_t> pages;
  for (uint64_t index = 0; index < kMappings; ++index) {
    mappings.push_back(Map(index % kMemoryPages, 1));
  }
  for (uint64_t round = 0; round < 16; ++round) {
    for (const auto& mapping : mappings) {
      pages.push_back(Page(*mapping, 0));
    }
  }
  const auto resolved = Resolve(pages);
  ASSERT_TRUE(resolved.ok());
  uint64_t bytes = 0;
  for (const std::span<std::byte> run : resolved->runs) {
    bytes += run.size();
  }
  EXPECT_EQ(bytes, pages.size() * kPage);
  for (const auto& mapping : mappings) {
    space_.Remove(*mapping);
  }
  mappings.clear();
  EXPECT_EQ(world_.ledger->used(Resource::kRegisteredBytes), kMappings * kPage);
  EXPECT_EQ(world_.ledger->used(Resource::kPinnedBytes), kMemoryPages * kPage);
}

}  // namespace
}  // namespace rnicd::core
