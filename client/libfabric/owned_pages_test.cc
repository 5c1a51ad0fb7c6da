#include "client/libfabric/owned_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"

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

  // The header `distance` bytes from the start of a mapping of `bytes` bytes.
  void WriteHeader(size_t distance, size_t bytes = kPages * kPage, size_t flags = kMappedFlag) const {
    const size_t header[2] = {distance, (bytes - distance) | flags};
    std::memcpy(start() + distance, header, sizeof(header));
  }

 private:
  char* mapping_;
};

// The C library's malloc says nothing of another one, which is that of a sanitizer. No header counts then.
bool IsOtherMalloc() { return mallinfo2().arena == 0; }
uintptr_t Accepted(const char* address) { return IsOtherMalloc() ? 0 : reinterpret_cast<uintptr_t>(address); }

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
  EXPECT_EQ(pages.begin, Accepted(block.start()));
  EXPECT_EQ(pages.end, Accepted(block.end()));
}

// As librnicd-heap.so makes them, and glibc where the user says so: by posix_memalign of 64 and of 4096, and by malloc.
TEST(OwnedPages, SmallBlockWithAMappingDoesToo) {
  for (const size_t distance : {size_t{48}, kPage - 16, size_t{0}}) {
    MappedBlock block;
    block.WriteHeader(distance, 4 * kPage);
    char* const first = block.start() + distance + 16;
    const PageRange pages = OwnedPages(first, 600);
    EXPECT_EQ(pages.begin, Accepted(block.start() + (distance + 16) / kPage * kPage));
    EXPECT_EQ(pages.bytes(), IsOtherMalloc() ? 0 : kPage);
    // Beyond it; and a part of it.
    EXPECT_TRUE(OwnedPages(first, 4 * kPage + 1).empty());
    EXPECT_TRUE(OwnedPages(first + 16, 600).empty());
  }
}

// As a pool of libfabric's: aligned to a page, with the first entry left free.
TEST(OwnedPages, AlignedBlockDoesToo) {
  MappedBlock block;
  block.WriteHeader(2 * kPage - 16);
  const PageRange pages = OwnedPages(block.start() + 14 * kPage + 0x160, 40 * kPage);
  EXPECT_EQ(pages.begin, Accepted(block.start() + 14 * kPage));
  EXPECT_EQ(pages.end, Accepted(block.start() + 55 * kPage));
}

TEST(OwnedPages, BlocksOfAHeapDoNot) {
  MappedBlock block;
  // In use before it; of another arena.
  for (const size_t flags : {size_t{0}, size_t{1}, size_t{3}, size_t{6}}) {
    block.WriteHeader(0, kPages * kPage, flags);
    EXPECT_TRUE(OwnedPages(block.start() + 16, 40 * kPage).empty()) << flags;
  }
}

TEST(OwnedPages, NorABlockThatEndsBefore) {
  MappedBlock block;
  block.WriteHeader(0, 40 * kPage);
  EXPECT_EQ(OwnedPages(block.start() + 16, 40 * kPage - 16).empty(), IsOtherMalloc());
  EXPECT_TRUE(OwnedPages(block.start() + 16, 40 * kPage - 15).empty());
}

// What only looks like a header: not of whole pages, or in front of another block and smaller than a pool.
TEST(OwnedPages, NorBytesThatLookLikeAHeader) {
  MappedBlock block;
  const size_t looks[][2] = {{8, (40 * kPage) | kMappedFlag},
                             {0, (40 * kPage + 16) | kMappedFlag},
                             {~size_t{0} - kPage + 1, (40 * kPage) | kMappedFlag},
                             {0, kMappedFlag}};
  for (const auto& header : looks) {
    std::memcpy(block.start(), header, sizeof(header));
    EXPECT_TRUE(OwnedPages(block.start() + 16, 2 * kPage).empty());
  }
  block.WriteHeader(0, 4 * kPage);
  EXPECT_TRUE(OwnedPages(block.start() + kPage + 32, 100).empty());
}

// Whatever a program writes there: its blocks are no mappings.
TEST(OwnedPages, NorBytesOfAThreadsHeap) {
  std::thread([] {
    const std::unique_ptr<char[]> block(new char[25 * kPage]);
    char* const page = block.get() + kPage - reinterpret_cast<uintptr_t>(block.get()) % kPage;
    const size_t header[2] = {0, (40 * kPage) | kMappedFlag};
    std::memcpy(page, header, sizeof(header));
    EXPECT_TRUE(OwnedPages(page + 16, 2 * kPage).empty());
  }).join();
}

TEST(FileUnder, IsThatOfAllPages) {
  const MappedBlock block;
  const auto first = reinterpret_cast<uintptr_t>(block.start());
  const PageRange pages = {.begin = first, .end = first + 4 * kPage};
  EXPECT_EQ(FileUnder(pages), 0);
  const UniqueFd file(memfd_create("pages", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 3 * kPage), 0);
  struct stat status = {};
  ASSERT_EQ(fstat(file.get(), &status), 0);
  ASSERT_EQ(mmap(block.start(), 3 * kPage, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0), block.start());
  EXPECT_EQ(FileUnder({.begin = first, .end = first + 3 * kPage}), status.st_ino);
  EXPECT_EQ(FileUnder(pages), 0);
  mprotect(block.start() + kPage, kPage, PROT_NONE);
  EXPECT_EQ(FileUnder({.begin = first, .end = first + 3 * kPage}), status.st_ino);
  munmap(block.start() + kPage, kPage);
  EXPECT_EQ(FileUnder({.begin = first, .end = first + 3 * kPage}), 0);
}

TEST(Threshold, ThatTheUserHasChosenStays) {
  const auto is_mapped = [](size_t bytes) {
    const size_t before = mallinfo2().hblks;
    const std::unique_ptr<char[]> block(new char[bytes]);
    *const_cast<volatile char*>(block.get()) = 0;
    return mallinfo2().hblks != before;
  };
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  for (const char* const name : {"MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    setenv(name, "glibc.malloc.mmap_threshold=1048576", 1);
    KeepBlocksMapped();
    unsetenv(name);
    EXPECT_FALSE(is_mapped(600'000));
  }
  KeepBlocksMapped();
  FillHolesOfTheHeap();
  EXPECT_EQ(is_mapped(1'000'000), !IsOtherMalloc());
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
  EXPECT_FALSE(owns());
  FillHolesOfTheHeap();
  EXPECT_EQ(owns(), !IsOtherMalloc());
}

}  // namespace
}  // namespace rnicd::fi
