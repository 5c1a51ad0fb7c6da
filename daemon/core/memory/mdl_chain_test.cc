#include "daemon/core/memory/mdl_chain.h"

#include <map>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kBase = 0x10000;

class MdlChainTest : public ::testing::Test {
 protected:
  MdlChainTest() {
    Add(MemoryObjectId{1}, 8, true);
    Add(MemoryObjectId{2}, 8, true);
    Add(MemoryObjectId{3}, 8, false);
    objects_[MemoryObjectId{4}] = UnchargedMemory(SystemOs(), kPage, pins_);
  }

  void Add(MemoryObjectId id, uint64_t pages, bool seal) {
    objects_[id] = UnchargedMemory(SystemOs(), pages * kPage, pins_);
    EXPECT_TRUE(objects_[id]->Allocate({.page_bytes = kPage}).ok());
    if (seal) {
      EXPECT_TRUE(FetchAndSeal(*objects_[id]).ok());
    }
  }

  absl::StatusOr<MappedRange> Resolve(const std::vector<MdlEntry>& chain, uint64_t length) const {
    return ResolveMdlChain(chain, length, [this](MemoryObjectId id) -> std::shared_ptr<MemoryObject> {
      const auto found = objects_.find(id);
      return found != objects_.end() ? found->second : nullptr;
    });
  }

  std::byte* HostOf(uint64_t id) const {
    return objects_.at(MemoryObjectId{id})->BeginUse()->object().mapping().data();
  }

  const PinBook pins_ = PinsOf(std::make_shared<Ledger>(Limits{}, nullptr));
  std::map<MemoryObjectId, std::shared_ptr<MemoryObject>> objects_;
};

// memory, offset, count, address
MdlEntry Entry(uint64_t memory, uint64_t offset, uint64_t count, uint64_t address) {
  return MdlEntry{.memory_id = {memory}, .byte_offset = offset, .byte_count = count, .virtual_address = {address}};
}

constexpr uint64_t kTop = UINT64_MAX;

// A chain that must be refused, with the reason and the field at fault.
struct Row {
  const char* what;
  std::vector<MdlEntry> chain;
  uint64_t length;
  ErrorReason reason;
  const char* field;
};

TEST_F(MdlChainTest, AnUnsoundEntryIsRefusedAtItsField) {
  const Row rows[] = {
      {"length 0", {Entry(1, 0, kPage, kBase)}, 0, ErrorReason::LENGTH_ZERO, "length"},
      {"no entry", {}, 1, ErrorReason::MDL_CHAIN_EMPTY, "mdl_chain"},
      {"length above the chain", {Entry(1, 0, kPage, kBase)}, kPage + 1, ErrorReason::LENGTH_ABOVE_CHAIN, "length"},
      {"length 2^64-1", {Entry(1, 0, kPage, kBase)}, kTop, ErrorReason::LENGTH_ABOVE_CHAIN, "length"},
      {"empty entry", {Entry(1, 0, 0, kBase)}, 1, ErrorReason::MDL_ENTRY_EMPTY, "mdl_chain[0].byte_count"},
      {"empty entry beyond length",
       {Entry(1, 0, kPage, kBase), Entry(1, kPage, 0, kBase + kPage)},
       kPage,
       ErrorReason::MDL_ENTRY_EMPTY,
       "mdl_chain[1].byte_count"},
      {"address 0", {Entry(1, 0, kPage, 0)}, 1, ErrorReason::MDL_ADDRESS_ZERO, "mdl_chain[0].virtual_address"},
      {"address passes 2^64",
       {Entry(1, 0, 2 * kPage, kTop - kPage + 1)},
       1,
       ErrorReason::MDL_RANGE_OVERFLOW,
       "mdl_chain[0].virtual_address"},
      {"offset passes 2^64",
       {Entry(1, kTop - kPage + 1, 2 * kPage, kBase)},
       1,
       ErrorReason::MDL_RANGE_OVERFLOW,
       "mdl_chain[0].byte_offset"},
      {"count 2^64-1", {Entry(1, 0, kTop, kBase)}, 1, ErrorReason::MDL_RANGE_OVERFLOW, "mdl_chain[0].virtual_address"},
      {"outside the memory by a byte",
       {Entry(1, 0, 8 * kPage + 1, kBase)},
       1,
       ErrorReason::MDL_RANGE_OUTSIDE_MEMORY,
       "mdl_chain[0].byte_count"},
      {"outside by a byte from an offset on",
       {Entry(1, 7 * kPage, kPage + 1, kBase)},
       1,
       ErrorReason::MDL_RANGE_OUTSIDE_MEMORY,
       "mdl_chain[0].byte_count"},
      {"offset at the end",
       {Entry(1, 8 * kPage, 1, kBase)},
       1,
       ErrorReason::MDL_RANGE_OUTSIDE_MEMORY,
       "mdl_chain[0].byte_count"},
      {"offset far outside",
       {Entry(1, uint64_t{1} << 62, kPage, kBase)},
       1,
       ErrorReason::MDL_RANGE_OUTSIDE_MEMORY,
       "mdl_chain[0].byte_count"},
      {"unknown memory", {Entry(9, 0, kPage, kBase)}, 1, ErrorReason::OBJECT_NOT_FOUND, "mdl_chain[0].memory_id"},
      {"unknown memory beyond length",
       {Entry(1, 0, kPage, kBase), Entry(9, 0, kPage, kBase + kPage)},
       kPage,
       ErrorReason::OBJECT_NOT_FOUND,
       "mdl_chain[1].memory_id"},
      {"not sealed", {Entry(3, 0, kPage, kBase)}, 1, ErrorReason::MEMORY_NOT_SEALED, "mdl_chain[0].memory_id"},
      {"no file yet", {Entry(4, 0, kPage, kBase)}, 1, ErrorReason::MEMORY_NOT_ATTACHED, "mdl_chain[0].memory_id"},
      {"not congruent",
       {Entry(1, 1, kPage, kBase)},
       1,
       ErrorReason::MDL_NOT_PAGE_CONGRUENT,
       "mdl_chain[0].byte_offset"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Resolve(row.chain, row.length).status(), FailsAt(row.reason, std::string(row.field))) << row.what;
  }
}

TEST_F(MdlChainTest, ABrokenSequenceIsRefusedAtTheEntryThatBreaksIt) {
  const Row rows[] = {
      {"gap of a page",
       {Entry(1, 0, kPage, kBase), Entry(1, kPage, kPage, kBase + 2 * kPage)},
       kPage + 1,
       ErrorReason::MDL_CHAIN_GAP,
       "mdl_chain[1].virtual_address"},
      {"overlap",
       {Entry(1, 0, 2 * kPage, kBase), Entry(1, kPage, kPage, kBase + kPage)},
       3 * kPage,
       ErrorReason::MDL_CHAIN_GAP,
       "mdl_chain[1].virtual_address"},
      {"backwards",
       {Entry(1, kPage, kPage, kBase + kPage), Entry(1, 0, kPage, kBase)},
       2 * kPage,
       ErrorReason::MDL_CHAIN_GAP,
       "mdl_chain[1].virtual_address"},
      {"wraps around 2^64",
       {Entry(1, 0, kPage - 1, kTop - kPage + 1), Entry(1, kPage, kPage, kPage)},
       2 * kPage - 1,
       ErrorReason::MDL_CHAIN_GAP,
       "mdl_chain[1].virtual_address"},
      {"seam inside a page",
       {Entry(1, 0, 100, kBase), Entry(2, 100, 100, kBase + 100)},
       200,
       ErrorReason::MDL_NOT_PAGE_CONGRUENT,
       "mdl_chain[1].virtual_address"},
      {"seam inside a page of one object",
       {Entry(1, 0, 100, kBase), Entry(1, kPage + 100, 100, kBase + 100)},
       200,
       ErrorReason::MDL_NOT_PAGE_CONGRUENT,
       "mdl_chain[1].virtual_address"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Resolve(row.chain, row.length).status(), FailsAt(row.reason, std::string(row.field))) << row.what;
  }
}

TEST_F(MdlChainTest, ARefusalLetsGoOfEveryObject) {
  EXPECT_FALSE(Resolve({Entry(1, 0, kPage, kBase), Entry(2, 0, kPage, kBase + 5 * kPage)}, 2 * kPage).ok());
  EXPECT_TRUE(objects_.at(MemoryObjectId{1})->Release().ok());
  EXPECT_TRUE(objects_.at(MemoryObjectId{2})->Release().ok());
}

TEST_F(MdlChainTest, HoldsEveryObjectWhileItExists) {
  {
    const auto range = Resolve({Entry(1, 0, kPage, kBase), Entry(2, 0, kPage, kBase + kPage)}, 2 * kPage);
    ASSERT_TRUE(range.ok());
    EXPECT_EQ(range->uses.size(), 2u);
    EXPECT_THAT(objects_.at(MemoryObjectId{1})->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
    EXPECT_THAT(objects_.at(MemoryObjectId{2})->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  }
  EXPECT_TRUE(objects_.at(MemoryObjectId{1})->Release().ok());
}

TEST_F(MdlChainTest, AGapBeyondTheLengthIsOfNoConcern) {
  const auto range = Resolve({Entry(1, 0, kPage, kBase), Entry(1, 2 * kPage, kPage, kBase + 9 * kPage)}, kPage);
  ASSERT_TRUE(range.ok()) << range.status();
  ASSERT_EQ(range->runs.size(), 1u);
  EXPECT_EQ(range->runs[0].size(), kPage);
}

TEST_F(MdlChainTest, TheLengthMayEndInsideAnEntry) {
  const auto range = Resolve({Entry(1, 0, kPage, kBase), Entry(2, 0, kPage, kBase + kPage)}, kPage + 7);
  ASSERT_TRUE(range.ok());
  ASSERT_EQ(range->runs.size(), 2u);
  EXPECT_EQ(range->runs[1].size(), 7u);
  EXPECT_EQ(range->length, kPage + 7);
  EXPECT_EQ(range->pages, 2u);
}

TEST_F(MdlChainTest, AnUnalignedRangeCountsEveryPageItTouches) {
  const auto range = Resolve({Entry(1, kPage - 1, kPage + 2, kBase + kPage - 1)}, kPage + 2);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->pages, 3u);
  EXPECT_EQ(range->runs[0].data(), HostOf(1) + kPage - 1);
}

TEST_F(MdlChainTest, NeighboursInMemoryBecomeOneRun) {
  const auto range =
      Resolve({Entry(1, 0, 100, kBase), Entry(1, 100, kPage - 100, kBase + 100), Entry(1, kPage, kPage, kBase + kPage)},
              2 * kPage);
  ASSERT_TRUE(range.ok()) << range.status();
  ASSERT_EQ(range->runs.size(), 1u);
  EXPECT_EQ(range->runs[0].size(), 2 * kPage);
  EXPECT_EQ(range->uses.size(), 1u);
}

TEST_F(MdlChainTest, ScatteredPagesOfSeveralObjectsKeepTheirOrder) {
  const auto range = Resolve(
      {Entry(1, 3 * kPage, kPage, kBase), Entry(2, 0, kPage, kBase + kPage), Entry(1, 0, kPage, kBase + 2 * kPage)},
      3 * kPage);
  ASSERT_TRUE(range.ok()) << range.status();
  ASSERT_EQ(range->runs.size(), 3u);
  EXPECT_EQ(range->runs[0].data(), HostOf(1) + 3 * kPage);
  EXPECT_EQ(range->runs[1].data(), HostOf(2));
  EXPECT_EQ(range->runs[2].data(), HostOf(1));
  EXPECT_EQ(range->uses.size(), 2u) << "an object is held once, however often it is named";
}

TEST_F(MdlChainTest, OneMemoryMayAppearTwice) {
  const auto range = Resolve({Entry(1, 0, kPage, kBase), Entry(1, 0, kPage, kBase + kPage)}, 2 * kPage);
  ASSERT_TRUE(range.ok());
  ASSERT_EQ(range->runs.size(), 2u);
  EXPECT_EQ(range->runs[0].data(), range->runs[1].data());
}

TEST_F(MdlChainTest, TheHighestAddressesCanBeUsed) {
  constexpr uint64_t kLastPage = UINT64_MAX - kPage + 1;
  const auto range = Resolve({Entry(1, 0, kPage, kLastPage)}, kPage);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->base.value + (range->length - 1), UINT64_MAX);
  EXPECT_EQ(range->pages, 1u);
}

TEST_F(MdlChainTest, NothingGoesOnBehindTheHighestAddress) {
  const std::vector<MdlEntry> chain = {Entry(1, 0, kPage, kTop - kPage + 1), Entry(1, kPage, kPage, 0)};
  EXPECT_THAT(Resolve(chain, 2 * kPage).status(),
              FailsAt(ErrorReason::MDL_ADDRESS_ZERO, "mdl_chain[1].virtual_address"));
  EXPECT_THAT(Resolve({Entry(1, kTop - kPage + 1, kPage, kBase)}, 1).status(),
              FailsAt(ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "mdl_chain[0].byte_count"));
}

TEST_F(MdlChainTest, TheLongestChainIsAcceptedAndOneMoreIsNot) {
  std::vector<MdlEntry> chain;
  for (uint64_t index = 0; index < kMaxMdlEntries; ++index) {
    chain.push_back(Entry(1 + index % 2, 0, kPage, kBase + index * kPage));
  }
  const auto range = Resolve(chain, kMaxMdlEntries * kPage);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->runs.size(), kMaxMdlEntries);
  EXPECT_EQ(range->uses.size(), 2u);
  chain.push_back(Entry(1, 0, kPage, kBase + kMaxMdlEntries * kPage));
  EXPECT_THAT(Resolve(chain, kPage).status(), FailsAt(ErrorReason::MDL_CHAIN_TOO_LONG, "mdl_chain"));
}

}  // namespace
}  // namespace rnicd::core
