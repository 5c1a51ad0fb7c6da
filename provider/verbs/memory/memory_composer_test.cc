#include "provider/verbs/memory/memory_composer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/system/os.h"

namespace rnicd::provider {
namespace {

using Bytes = std::span<std::byte>;
constexpr size_t kPage = 4096;

// Expected value of the byte at this offset of this file.
std::byte Pattern(unsigned seed, size_t offset) {
  return static_cast<std::byte>((offset * 131 + offset / kPage * 17 + uint64_t{seed} * 59) & 0xff);
}

// A populated memory file, mapped shared, with a content that encodes the place of each byte; sealed as core seals
// attached memory.
class SharedMemory {
 public:
  SharedMemory(size_t pages, unsigned seed, std::byte* where = nullptr) {
    auto file = SystemOs().CreateMemoryFile(pages * kPage, kPage);
    EXPECT_TRUE(file.ok());
    file_ = *std::move(file);
    void* const address = mmap(where, pages * kPage, PROT_READ | PROT_WRITE,
                               MAP_SHARED | (where == nullptr ? 0 : MAP_FIXED), file_.get(), 0);
    EXPECT_NE(address, MAP_FAILED);
    bytes_ = {static_cast<std::byte*>(address), pages * kPage};
    for (size_t offset = 0; offset < bytes_.size(); ++offset) {
      bytes_[offset] = Pattern(seed, offset);
    }
    EXPECT_EQ(fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
  }
  ~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Bytes bytes() const { return bytes_; }
  Bytes page(size_t index) const { return bytes_.subspan(index * kPage, kPage); }
  Bytes run(size_t begin, size_t end) const { return bytes_.subspan(begin, end - begin); }

 private:
  UniqueFd file_;
  Bytes bytes_;
};

std::vector<std::byte> Concatenation(const std::vector<Bytes>& runs) {
  std::vector<std::byte> bytes;
  for (const Bytes run : runs) {
    bytes.insert(bytes.end(), run.begin(), run.end());
  }
  return bytes;
}

// The view has the content of the runs, and a write to one is visible in the other.
void ExpectView(const std::vector<Bytes>& runs) {
  const auto view = Compose(runs, kPage);
  ASSERT_TRUE(view.ok()) << view.status();
  const std::vector<std::byte> expected = Concatenation(runs);
  ASSERT_EQ(view->bytes().size(), expected.size());
  EXPECT_TRUE(std::ranges::equal(view->bytes(), expected));
  size_t offset = 0;
  for (const Bytes run : runs) {
    for (const size_t place : {size_t{0}, run.size() / 2, run.size() - 1}) {
      std::byte& there = view->bytes()[offset + place];
      const std::byte before = std::exchange(there, there ^ std::byte{0xff});
      EXPECT_EQ(run[place], before ^ std::byte{0xff}) << "byte " << place << " of the run at " << offset;
      there = before;
    }
    offset += run.size();
  }
}

// Counts mappings of memory files only, because the allocator creates and removes others.
size_t MappingCount() {
  std::ifstream file("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    count += line.find("rnicd-memory") != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST(Compose, LaysScatteredPagesEndToEnd) {
  const SharedMemory memory(16, 1);
  ExpectView({memory.page(3), memory.page(9), memory.page(0), memory.page(15)});
}

TEST(Compose, LaysPagesInReverseOrder) {
  const SharedMemory memory(64, 2);
  std::vector<Bytes> runs;
  for (size_t index = 64; index-- > 0;) {
    runs.push_back(memory.page(index));
  }
  ExpectView(runs);
}

TEST(Compose, RepeatsAPageAsOftenAsItIsNamed) {
  const SharedMemory memory(4, 3);
  const auto view = Compose(std::vector<Bytes>{memory.page(2), memory.page(2), memory.page(2)}, kPage);
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->bytes().size(), 3 * kPage);
  view->bytes()[kPage + 5] = std::byte{0xa5};
  EXPECT_EQ(view->bytes()[5], std::byte{0xa5}) << "it is one page";
  EXPECT_EQ(view->bytes()[2 * kPage + 5], std::byte{0xa5});
  EXPECT_EQ(memory.page(2)[5], std::byte{0xa5});
}

TEST(Compose, TakesRunsOfManyPagesAndOfSeveralFiles) {
  const SharedMemory one(32, 4);
  const SharedMemory other(32, 5);
  ExpectView({one.run(8 * kPage, 20 * kPage), other.run(kPage, 3 * kPage), one.run(0, 2 * kPage),
              other.run(16 * kPage, 32 * kPage)});
}

TEST(Compose, TheFirstRunMayBeginAndTheLastEndInsideAPage) {
  const SharedMemory memory(16, 6);
  for (const size_t begin : {size_t{1}, size_t{8}, kPage - 1}) {
    for (const size_t end : {size_t{1}, size_t{1024}, kPage - 1}) {
      ExpectView({memory.run(4 * kPage + begin, 6 * kPage), memory.page(1), memory.run(9 * kPage, 10 * kPage + end)});
      ExpectView({memory.run(4 * kPage + begin, 5 * kPage), memory.run(9 * kPage, 9 * kPage + end)});
    }
  }
}

TEST(Compose, TheViewBeginsAtTheSamePlaceWithinAPage) {
  const SharedMemory memory(4, 7);
  const auto view = Compose(std::vector<Bytes>{memory.run(2 * kPage + 100, 3 * kPage), memory.page(0)}, kPage);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->bytes().data()) % kPage, 100u);
}

TEST(Compose, OneRunInsideAPageIsAView) {
  const SharedMemory memory(4, 8);
  ExpectView({memory.run(2 * kPage + 100, 2 * kPage + 300)});
}

TEST(Compose, ViewsOfNothingAreEmpty) {
  const auto view = Compose({}, kPage);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->bytes().empty());
}

// The two are adjacent, as the kernel usually places them, and the run crosses the border. The left file is longer than
// what is mapped of it: a copy that continued past the left mapping would expose those pages.
TEST(Compose, ARunOverTheBorderOfTwoMappingsHasThePagesOfBoth) {
  void* const room = mmap(nullptr, 24 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  auto* const begin = static_cast<std::byte*>(room);
  const SharedMemory left(24, 10, begin);
  const SharedMemory right(8, 11, begin + 16 * kPage);
  const SharedMemory scattered(4, 9);
  for (const size_t before : {size_t{1}, size_t{3}, size_t{7}, size_t{15}, size_t{16}}) {
    for (const size_t behind : {size_t{1}, size_t{2}, size_t{8}}) {
      const Bytes run{begin + (16 - before) * kPage, (before + behind) * kPage};
      ExpectView({scattered.page(1), run, scattered.page(0)});
      ExpectView({scattered.page(1), run.first(run.size() - 100)});
    }
  }
}

TEST(Compose, TheViewOutlivesTheMappingsItWasMadeOf) {
  auto memory = std::make_unique<SharedMemory>(4, 13);
  const std::vector<Bytes> runs = {memory->page(3), memory->page(1)};
  const std::vector<std::byte> expected = Concatenation(runs);
  const auto view = Compose(runs, kPage);
  ASSERT_TRUE(view.ok());
  memory.reset();
  EXPECT_TRUE(std::ranges::equal(view->bytes(), expected));
}

TEST(Compose, LeavesNoMappingBehind) {
  const SharedMemory memory(64, 14);
  std::vector<Bytes> runs;
  for (size_t index = 0; index < 64; index += 2) {
    runs.push_back(memory.page(index));
  }
  const size_t before = MappingCount();
  {
    auto view = Compose(runs, kPage);
    ASSERT_TRUE(view.ok());
    EXPECT_GE(MappingCount(), before + runs.size());
    ComposedView moved = *std::move(view);
    // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
    EXPECT_TRUE(view->bytes().empty());
    EXPECT_EQ(moved.bytes().size(), runs.size() * kPage);
    moved = ComposedView();
    EXPECT_EQ(MappingCount(), before);
  }
  EXPECT_EQ(MappingCount(), before);
}

TEST(Compose, MemoryThatCannotBeMappedTwiceIsRefusedAndLeavesNothing) {
  const SharedMemory memory(4, 15);
  void* const own = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(own, MAP_FAILED);
  const std::vector<Bytes> runs = {memory.page(0), memory.page(2), {static_cast<std::byte*>(own), kPage}};
  const size_t before = MappingCount();
  const absl::Status refused = Compose(runs, kPage).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_NE(refused.message().find("(mremap: EINVAL)"), std::string_view::npos) << refused;
  EXPECT_EQ(MappingCount(), before);
  munmap(own, kPage);
}

TEST(Compose, ASeamInsideAPageIsAFault) {
  const SharedMemory memory(8, 16);
  for (const auto& runs : {std::vector<Bytes>{memory.run(0, 100), memory.page(3)},
                           std::vector<Bytes>{memory.page(3), memory.run(100, kPage)},
                           std::vector<Bytes>{memory.page(3), memory.run(5 * kPage, 5 * kPage + 8), memory.page(1)}}) {
    EXPECT_TRUE(FailedWith(Compose(runs, kPage).status(), ErrorReason::INTERNAL_FAULT));
  }
}

}  // namespace
}  // namespace rnicd::provider
