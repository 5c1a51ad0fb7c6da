#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/objects/busy_heap_test.h"
#include "client/cpp/objects/callers_memory.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

const uint64_t kPageBytes = SystemOs().page_bytes();
const uint64_t kBlockBytes = 8 * kPageBytes;

// A mapping of the test's own.
class Block {
 public:
  explicit Block(uint64_t size = kBlockBytes, int access = PROT_READ | PROT_WRITE,
                 int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1, uint64_t offset = 0)
      : bytes_(static_cast<std::byte*>(mmap(nullptr, size, access, flags, fd, static_cast<off_t>(offset))), size) {
    EXPECT_NE(bytes_.data(), MAP_FAILED);
  }
  ~Block() { munmap(bytes_.data(), bytes_.size()); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  VirtualAddress address() const { return {reinterpret_cast<uintptr_t>(bytes_.data())}; }

 private:
  const std::span<std::byte> bytes_;
};

// A mapping that nobody unmaps here: it is to be moved.
std::span<std::byte> PrivatePages(uint64_t size) {
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(pages, MAP_FAILED);
  return {static_cast<std::byte*>(pages), size};
}

UniqueFd FileOf(uint64_t size) { return *SystemOs().CreateMemoryFile(size, kNdkPageBytes); }

Block Shared(const UniqueFd& file, int access = PROT_READ | PROT_WRITE, uint64_t offset = 0) {
  return Block(kBlockBytes, access, MAP_SHARED, file.get(), offset);
}

void Number(std::span<std::byte> bytes) {
  for (size_t index = 0; index < bytes.size(); ++index) {
    bytes[index] = static_cast<std::byte>(index / kPageBytes + index);
  }
}

bool IsNumbered(std::span<const std::byte> bytes) {
  std::vector<std::byte> expected(bytes.size());
  Number(expected);
  return std::equal(bytes.begin(), bytes.end(), expected.begin());
}

// The refusal's message; empty when it has not this field or reason.
std::string MessageOf(const absl::Status& status, std::string_view field) {
  const ErrorInfo info = ErrorInfoOf(status);
  return info.reason == ErrorReason::FIELD_OUT_OF_RANGE && info.field == field ? std::string(status.message()) : "";
}

using Text = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string ObjectionNow(std::span<const std::byte> pages) {
  const Text smaps(std::fopen("/proc/self/smaps", "re"), &std::fclose);
  const absl::Status status = CheckPrivatePages(smaps.get(), pages);
  return status.ok() ? "none" : MessageOf(status, "pages");
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// --- where ---

TEST(CallersMemory, FileIsMappedAtAFreeAddressOnly) {
  const UniqueFd file = FileOf(kBlockBytes);
  VirtualAddress address;
  {
    const Block taken;
    address = taken.address();
    EXPECT_TRUE(Contains(MessageOf(MapAt(address, file.get(), kBlockBytes).status(), "address"), "mapped there"));
    const VirtualAddress before{address.value - kPageBytes};
    EXPECT_NE(MessageOf(MapAt(before, file.get(), kBlockBytes).status(), "address"), "");
  }
  EXPECT_NE(MessageOf(MapAt({address.value + 1}, file.get(), kBlockBytes).status(), "address"), "");
  const auto mapping = MapAt(address, file.get(), kBlockBytes);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->data()), address.value);
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
}

TEST(CallersMemory, MappingOfTheFilesFirstBytesIsAccepted) {
  const UniqueFd file = FileOf(2 * kBlockBytes);
  const Block mapping(2 * kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get());
  EXPECT_EQ(CheckMapping(mapping.bytes(), file.get()), absl::OkStatus());
  EXPECT_EQ(CheckMapping(mapping.bytes().first(kBlockBytes), file.get()), absl::OkStatus());
  // The kernel has two mappings then.
  ASSERT_EQ(madvise(mapping.bytes().data(), kPageBytes, MADV_DONTFORK), 0);
  EXPECT_EQ(CheckMapping(mapping.bytes(), file.get()), absl::OkStatus());
}

TEST(CallersMemory, AnythingElseIsRefusedAsAMapping) {
  const UniqueFd file = FileOf(2 * kBlockBytes);
  const UniqueFd other = FileOf(2 * kBlockBytes);
  const Block whole = Shared(file);
  const Block of_other = Shared(other);
  const Block behind = Shared(file, PROT_READ | PROT_WRITE, kBlockBytes);
  const Block read_only = Shared(file, PROT_READ);
  const Block copy(kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get());
  const Block anonymous;
  for (const std::span<std::byte> refused :
       {of_other.bytes(), behind.bytes(), read_only.bytes(), copy.bytes(), anonymous.bytes(),
        whole.bytes().subspan(kPageBytes), whole.bytes().first(0)}) {
    EXPECT_NE(MessageOf(CheckMapping(refused, file.get()), "mapping"), "");
  }
}

// --- which pages ---

TEST(CallersMemory, OrdinaryMemoryMayBeReplaced) {
  const Block block;
  EXPECT_EQ(ObjectionNow(block.bytes()), "none");
  EXPECT_EQ(ObjectionNow(block.bytes().subspan(kPageBytes, kPageBytes)), "none");
  madvise(block.bytes().data(), kPageBytes, MADV_NOHUGEPAGE);
  EXPECT_EQ(ObjectionNow(block.bytes()), "none");
}

TEST(CallersMemory, PartsOfPagesAndHolesAreRefused) {
  const Block block;
  const std::span<std::byte> bytes = block.bytes();
  for (const std::span<std::byte> part :
       {bytes.first(0), bytes.first(kPageBytes + 1), bytes.subspan(1, kPageBytes), std::span<std::byte>()}) {
    EXPECT_TRUE(Contains(ObjectionNow(part), "not whole pages"));
  }
  ASSERT_EQ(munmap(bytes.data() + 2 * kPageBytes, kPageBytes), 0);
  EXPECT_TRUE(Contains(ObjectionNow(bytes), "not all of them are mapped"));
  EXPECT_TRUE(Contains(ObjectionNow({bytes.data(), UINT64_MAX - kPageBytes + 1}), "not all of them are mapped"));
}

TEST(CallersMemory, WhatOthersMayHaveOrWouldBeLostIsRefused) {
  const UniqueFd file = FileOf(kBlockBytes);
  const Block shared = Shared(file);
  const Block copy(kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get());
  const Block read_only(kBlockBytes, PROT_READ);
  const Block executable(kBlockBytes, PROT_READ | PROT_WRITE | PROT_EXEC);
  const Block grows_down(kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN);
  const Block kept;
  ASSERT_EQ(madvise(kept.bytes().data() + kPageBytes, kPageBytes, MADV_DONTFORK), 0);
  const Block locked(kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED);
  EXPECT_TRUE(Contains(ObjectionNow(shared.bytes()), "shared"));
  EXPECT_TRUE(Contains(ObjectionNow(copy.bytes()), "file"));
  EXPECT_TRUE(Contains(ObjectionNow(read_only.bytes()), "r--p"));
  EXPECT_TRUE(Contains(ObjectionNow(executable.bytes()), "rwxp"));
  EXPECT_TRUE(Contains(ObjectionNow(grows_down.bytes()), " gd"));
  EXPECT_TRUE(Contains(ObjectionNow(kept.bytes()), " dc"));
  EXPECT_TRUE(Contains(ObjectionNow(locked.bytes()), " lo"));
}

// What this machine may lack, as the kernel writes it.
TEST(CallersMemory, AreasOfTheKernelAreKnownByTheirText) {
  const auto objection = [](const std::string& head, const std::string& details) {
    std::string smaps = "10000-20000 r--p 00000000 00:00 0\nVmFlags: rd mr\n20000-40000 " + head +
                        "\nRss:  4 kB\nAnonymous:  4 kB\n" + details + "\n";
    const Text text(fmemopen(smaps.data(), smaps.size(), "r"), &std::fclose);
    const absl::Status status = CheckPrivatePages(text.get(), {reinterpret_cast<std::byte*>(0x20000), 0x10000});
    return status.ok() ? "none" : MessageOf(status, "pages");
  };
  const std::string kPlain = "rw-p 00000000 00:00 0 ";
  EXPECT_EQ(objection(kPlain, "ProtectionKey: 0\nVmFlags: rd wr mr mw me ac nr sd hg "), "none");
  EXPECT_EQ(objection("rw-p 00000000 00:00 0   [anon:glibc: malloc]", "VmFlags: rd wr mr mw me ac"), "none");
  EXPECT_TRUE(Contains(objection("rw-p 00000000 00:00 0   [heap]", "VmFlags: rd wr"), "[heap]"));
  EXPECT_TRUE(Contains(objection("rw-p 00000000 00:00 0   [stack]", "VmFlags: rd wr gd"), "[stack]"));
  EXPECT_TRUE(Contains(objection("rw-p 00000000 00:0f 77   /anon_hugepage (deleted)", "VmFlags: rd wr ht"), "huge"));
  EXPECT_TRUE(Contains(objection(kPlain, "ProtectionKey: 1\nVmFlags: rd wr"), "ProtectionKey: 1"));
  EXPECT_TRUE(Contains(objection(kPlain, "Rss: 4 kB"), "does not report"));
  for (const std::string flag : {"io", "pf", "lo", "ht", "um", "uw", "ui", "wf", "mt", "mg", "dd", "ss", "sl"}) {
    EXPECT_TRUE(Contains(objection(kPlain, "VmFlags: rd wr " + flag), flag)) << flag;
  }
}

// Other threads map and unmap beside it meanwhile, and the kernel joins mappings that are alike.
TEST(CallersMemory, MappingThatGrowsWhileTheTextIsReadIsListedTwiceAndCountsOnce) {
  const std::string flags = " rw-p 00000000 00:00 0\nVmFlags: rd wr\n";
  std::string smaps = "10000-28000" + flags + "20000-30000" + flags + "20000-50000" + flags;
  const Text text(fmemopen(smaps.data(), smaps.size(), "r"), &std::fclose);
  const absl::Status status = CheckPrivatePages(text.get(), {reinterpret_cast<std::byte*>(0x20000), 0x10000});
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CallersMemory, StackOfTheCallerIsRefused) {
  const auto objection = [] {
    const uintptr_t page = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) / kPageBytes * kPageBytes;
    return MessageOf(MapSpare({reinterpret_cast<std::byte*>(page), kPageBytes}).status(), "pages");
  };
  EXPECT_TRUE(Contains(objection(), "stack"));
  std::string of_a_thread;
  std::thread([&] { of_a_thread = objection(); }).join();
  EXPECT_TRUE(Contains(of_a_thread, "stack"));
}

// --- replacing ---

TEST(CallersMemory, MoveKeepsBytesAndAddressAndMakesTheFileOfThem) {
  const Block block;
  Number(block.bytes());
  const UniqueFd file = FileOf(kBlockBytes);
  ASSERT_TRUE(MoveOver(*SystemOs().Map(file.get(), kBlockBytes), block.bytes()).ok());
  EXPECT_TRUE(IsNumbered(block.bytes()));
  EXPECT_EQ(CheckMapping(block.bytes(), file.get()), absl::OkStatus());
  const std::byte written{99};
  ASSERT_EQ(pwrite(file.get(), &written, 1, 5), 1);
  EXPECT_EQ(block.bytes()[5], written);
}

TEST(CallersMemory, SpareGivesBackPrivatePagesWithTheBytesOfNow) {
  const Block block;
  const std::span<std::byte> middle = block.bytes().subspan(kPageBytes, 3 * kPageBytes);
  Number(block.bytes());
  const auto spare = MapSpare(middle);
  ASSERT_TRUE(spare.ok()) << spare.status();
  const UniqueFd file = FileOf(middle.size());
  ASSERT_TRUE(MoveOver(*SystemOs().Map(file.get(), middle.size()), middle).ok());
  EXPECT_TRUE(IsNumbered(block.bytes()));
  middle[7] = std::byte{200};
  ASSERT_TRUE(MoveOver(*spare, middle).ok());
  EXPECT_EQ(middle[7], std::byte{200});
  EXPECT_EQ(block.bytes()[kPageBytes - 1], static_cast<std::byte>(kPageBytes - 1));
  EXPECT_EQ(ObjectionNow(block.bytes()), "none");
}

// To the last mapping that this process may have, but for a few that the heap may take.
class AllMappings {
 public:
  AllMappings() : pages_(mmap(nullptr, kPages * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    uint64_t page = 1;
    while (page < kPages && Protect(page, PROT_READ)) {
      page += 2;
    }
    EXPECT_LT(page, kPages);
    EXPECT_TRUE(Protect(page - 2, PROT_NONE));
  }
  ~AllMappings() { munmap(pages_, kPages * kPageBytes); }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;

 private:
  // Four times the kernel's default.
  static constexpr uint64_t kPages = 1U << 18;

  bool Protect(uint64_t page, int access) const {
    return mprotect(static_cast<std::byte*>(pages_) + page * kPageBytes, kPageBytes, access) == 0;
  }

  void* const pages_;
};

TEST(CallersMemory, MoveThatTheKernelRefusesLeavesThePagesAsTheyWere) {
  const Block block;
  Number(block.bytes());
  const UniqueFd file = FileOf(kBlockBytes);
  const Block mapping = Shared(file);
  absl::Status moved;
  {
    const AllMappings all;
    moved = MoveOver(mapping.bytes(), block.bytes());
  }
  EXPECT_TRUE(FailedWith(moved, ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << moved;
  EXPECT_TRUE(Contains(std::string(moved.message()), "mremap"));
  EXPECT_TRUE(IsNumbered(block.bytes()));
  EXPECT_EQ(ObjectionNow(block.bytes()), "none");
  block.bytes().front() = std::byte{1};
}

// Kernels before 6.17 do not move two mappings at once, and find out when nothing is mapped at the pages any more.
TEST(CallersMemory, MoveOfTwoMappingsLosesNothing) {
  const Block block;
  Number(block.bytes());
  const std::span<std::byte> mapping = PrivatePages(kBlockBytes);
  ASSERT_EQ(madvise(mapping.data(), kPageBytes, MADV_DONTDUMP), 0);
  MoveOver(mapping, block.bytes()).IgnoreError();
  EXPECT_TRUE(IsNumbered(block.bytes()));
  block.bytes().front() = std::byte{1};
}

// Pages that are gone are not replaced by anything: others may be there already.
TEST(CallersMemory, PagesThatAreGoneStayGone) {
  const Block block;
  ASSERT_EQ(munmap(block.bytes().data() + kPageBytes, kPageBytes), 0);
  const Block mapping;
  EXPECT_FALSE(MoveOver(mapping.bytes(), block.bytes()).ok());
  EXPECT_TRUE(MapAt({block.address().value + kPageBytes}, FileOf(kPageBytes).get(), kPageBytes).ok());
}

// The heap maps and unmaps, too: the kernel joins its mappings with those of the pages, and parts them again.
TEST(CallersMemory, HeapThatOtherThreadsUseSurvivesAThousandMoves) {
  const BusyHeap busy;
  for (size_t round = 0; round < 1000; ++round) {
    const Block block;
    Number(block.bytes());
    const std::span<std::byte> pages = block.bytes().subspan(round % 4 * kPageBytes, (round % 3 + 1) * kPageBytes);
    const UniqueFd file = FileOf(pages.size());
    ASSERT_TRUE(MoveOver(*SystemOs().Map(file.get(), pages.size()), pages).ok());
    ASSERT_TRUE(IsNumbered(block.bytes()));
    ASSERT_TRUE(MoveOver(PrivatePages(pages.size()), pages).ok());
    ASSERT_TRUE(IsNumbered(block.bytes()));
  }
}

// Forth and back until it meets the writer.
TEST(CallersMemoryDeathTest, WriterInBetweenGetsASignal) {
  const auto race = [] {
    // The thread sanitizer's handler would wait for its report of the race, which waits for this thread.
    std::signal(SIGSEGV, SIG_DFL);
    const Block block;
    std::atomic_ref<std::byte> written(block.bytes().front());
    const std::jthread writer([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        written.store(std::byte{1}, std::memory_order_relaxed);
      }
    });
    while (true) {
      const UniqueFd file = FileOf(kBlockBytes);
      ASSERT_TRUE(MoveOver(*SystemOs().Map(file.get(), kBlockBytes), block.bytes()).ok());
    }
  };
  EXPECT_DEATH(race(), "");
}

}  // namespace
}  // namespace rnicd::inline client
