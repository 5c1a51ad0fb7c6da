#include "client/libfabric/owned_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace rnicd::fi {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 64;
constexpr size_t kMappedFlag = 2;

// A mapping as the GNU C library makes it for one block. Pages around it are not mapped.
class MappedBlock {
 public:
  MappedBlock() {
    mapping_ = static_cast<char*>(mmap(nullptr, (kPages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(start(), kPages * kPage, PROT_READ | PROT_WRITE);
  }
  MappedBlock(const MappedBlock&) = delete;
  MappedBlock& operator=(const MappedBlock&) = delete;
  ~MappedBlock() { munmap(mapping_, (kPages + 2) * kPage); }

  char* start() const { return mapping_ + kPage; }
  char* end() const { return start() + kPages * kPage; }

  // The header `distance` bytes from the mapping's start.
  void WriteHeader(size_t distance, size_t flags = kMappedFlag) const {
    const size_t header[2] = {distance, (kPages * kPage - distance) | flags};
    std::memcpy(start() + distance, header, sizeof(header));
  }

 private:
  char* mapping_;
};

TEST(OwnedPages, WholePagesAreTheBuffers) {
  const MappedBlock block;
  const PageRange pages = OwnedPages(block.start() + kPage, 2 * kPage);
  EXPECT_EQ(pages.begin, reinterpret_cast<uintptr_t>(block.start() + kPage));
  EXPECT_EQ(pages.end, pages.begin + 2 * kPage);
}

TEST(OwnedPages, PartsOfAPageAreNot) {
  const MappedBlock block;
  EXPECT_TRUE(OwnedPages(block.start() + 16, kPage).empty());
  EXPECT_TRUE(OwnedPages(block.start(), kPage + 1).empty());
  EXPECT_TRUE(OwnedPages(block.start() + kPage - 1, 1).empty());
  EXPECT_TRUE(OwnedPages(block.start(), 0).empty());
  EXPECT_TRUE(OwnedPages(nullptr, 0).empty());
  EXPECT_TRUE(OwnedPages(block.start(), ~size_t{0}).empty());
}

TEST(OwnedPages, BlockWithAMappingOfItsOwnOwnsItsFirstAndItsLastPage) {
  MappedBlock block;
  block.WriteHeader(0);
  const PageRange pages = OwnedPages(block.start() + 16, (kPages - 1) * kPage + 100);
  EXPECT_EQ(pages.begin, reinterpret_cast<uintptr_t>(block.start()));
  EXPECT_EQ(pages.end, reinterpret_cast<uintptr_t>(block.end()));
}

// As a pool of libfabric's: aligned to a page, with the first entry left free.
TEST(OwnedPages, AlignedBlockDoesToo) {
  MappedBlock block;
  block.WriteHeader(2 * kPage - 16);
  const PageRange pages = OwnedPages(block.start() + 14 * kPage + 0x160, 40 * kPage);
  EXPECT_EQ(pages.begin, reinterpret_cast<uintptr_t>(block.start() + 14 * kPage));
  EXPECT_EQ(pages.end, reinterpret_cast<uintptr_t>(block.start() + 55 * kPage));
}

TEST(OwnedPages, BlocksOfAHeapDoNot) {
  MappedBlock block;
  // In use before it; of another arena.
  for (const size_t flags : {size_t{0}, size_t{1}, size_t{3}, size_t{6}}) {
    block.WriteHeader(0, flags);
    EXPECT_TRUE(OwnedPages(block.start() + 16, 40 * kPage).empty()) << flags;
  }
}

TEST(OwnedPages, NorABlockThatEndsBefore) {
  MappedBlock block;
  const size_t header[2] = {0, (40 * kPage) | kMappedFlag};
  std::memcpy(block.start(), header, sizeof(header));
  EXPECT_FALSE(OwnedPages(block.start() + 16, 40 * kPage - 16).empty());
  EXPECT_TRUE(OwnedPages(block.start() + 16, 40 * kPage - 15).empty());
}

// What only looks like a header: smaller than any block with a mapping of its own, or not of whole pages.
TEST(OwnedPages, NorBytesThatLookLikeAHeader) {
  MappedBlock block;
  const size_t looks[][2] = {{0, (4 * kPage) | kMappedFlag},
                             {8, (40 * kPage) | kMappedFlag},
                             {0, (40 * kPage + 16) | kMappedFlag},
                             {0, kMappedFlag}};
  for (const auto& header : looks) {
    std::memcpy(block.start(), header, sizeof(header));
    EXPECT_TRUE(OwnedPages(block.start() + 16, 2 * kPage).empty());
  }
}

// A program that has freed much before its first message.
TEST(HolesOfTheHeap, AreFilledSoThatABlockIsAMapping) {
  mallopt(M_MMAP_THRESHOLD, kMappedBlockMin);
  std::vector<std::unique_ptr<char[]>> small(20'000);
  for (auto& block : small) {
    block = std::make_unique<char[]>(1000);
  }
  const auto top = std::make_unique<char[]>(1000);
  small.clear();
  const auto owns = [] {
    const auto block = std::make_unique<char[]>(8 * kHoleMin);
    // Not whole pages, with whatever malloc.
    return !OwnedPages(block.get() + 16, 8 * kHoleMin - 32).empty();
  };
  // The C library's says nothing of another malloc, which is that of a sanitizer.
  const bool other_malloc = mallinfo2().arena == 0;
  EXPECT_FALSE(owns());
  FillHolesOfTheHeap();
  EXPECT_EQ(owns(), !other_malloc);
}

}  // namespace
}  // namespace rnicd::fi
