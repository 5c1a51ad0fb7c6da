// Memory at addresses of the caller's, against the real daemon: allocated there, mapped there before, or replaced
// there.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/objects/busy_heap_test.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/memory_file.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kBlockBytes = 64 * kClientPage;

// Private memory of the test's own, numbered.
class Block {
 public:
  explicit Block(uint64_t size = kBlockBytes)
      : bytes_(static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               size) {
    for (size_t index = 0; index < size; ++index) {
      bytes_[index] = Numbered(index);
    }
  }
  ~Block() { munmap(bytes_.data(), bytes_.size()); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  bool IsNumbered() const {
    for (size_t index = 0; index < bytes_.size(); ++index) {
      if (bytes_[index] != Numbered(index)) {
        return false;
      }
    }
    return true;
  }

 private:
  static std::byte Numbered(size_t index) { return static_cast<std::byte>(index / kClientPage + index); }

  const std::span<std::byte> bytes_;
};

VirtualAddress AddressOf(std::span<const std::byte> bytes) { return {reinterpret_cast<uintptr_t>(bytes.data())}; }

// An address with nothing mapped for a GiB from there. The kernel fills such a gap from its upper end, so that other
// threads do not reach it.
VirtualAddress FreeAddress() {
  constexpr uint64_t kGap = 4ULL << 30;
  void* const gap = mmap(nullptr, kGap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(gap, MAP_FAILED);
  EXPECT_EQ(munmap(gap, kGap), 0);
  return {reinterpret_cast<uintptr_t>(gap)};
}

// Executes in a child; whether it returned true.
bool InAChild(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// Whether what a child writes there stays its own.
bool IsPrivate(std::span<std::byte> bytes) {
  const std::byte before = bytes.front();
  EXPECT_TRUE(InAChild([&] {
    bytes.front() ^= std::byte{1};
    return true;
  }));
  const bool same = bytes.front() == before;
  bytes.front() = before;
  return same;
}

void ExpectRefused(const absl::Status& status, const std::string& field) {
  EXPECT_TRUE(FailedWith(status, ErrorReason::FIELD_OUT_OF_RANGE)) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, field) << status;
}

class LibrnicdAddress : public Librnicd {};

// --- allocated there ---

TEST_F(LibrnicdAddress, MemoryIsAllocatedWhereTheCallerWants) {
  const Client client = MustConnect();
  const VirtualAddress address = FreeAddress();
  const Memory memory = Must(Memory::Allocate(client, {.size = kMiB, .address = address}));
  EXPECT_EQ(memory.address(), address);
  EXPECT_EQ(memory.page_size(), PageSize::k4KiB);
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{7});
  EXPECT_EQ(Must(MemoryRegion::Register(memory, 0)).base_address(), address);
}

TEST_F(LibrnicdAddress, AddressWhereSomethingIsMappedIsRefused) {
  const Client client = MustConnect();
  const Block block;
  const VirtualAddress unaligned{FreeAddress().value + 1};
  ExpectRefused(Memory::Allocate(client, {.size = kBlockBytes, .address = AddressOf(block.bytes())}).status(),
                "address");
  ExpectRefused(Memory::Allocate(client, {.size = kClientPage, .address = unaligned}).status(), "address");
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_EQ(UsedBy(client, "memory_objects"), 0u);
}

TEST_F(LibrnicdAddress, BatchRefusesOnlyTheAddressThatIsTaken) {
  const Client client = MustConnect();
  const Block block;
  const VirtualAddress address = FreeAddress();
  const std::vector<AllocateOptions> options = {{.size = kMiB, .address = address},
                                                {.size = kClientPage, .address = AddressOf(block.bytes())}};
  const auto memories = Must(Memory::AllocateBatch(client, options));
  ASSERT_EQ(memories.size(), 2u);
  ASSERT_TRUE(memories[0].ok()) << memories[0].status();
  EXPECT_EQ(memories[0]->address(), address);
  ExpectRefused(memories[1].status(), "address");
}

// --- mapped there before ---

TEST_F(LibrnicdAddress, ImportUsesTheMappingOfTheCallerAndLeavesIt) {
  const Client client = MustConnect();
  const UniqueFd file = MakeSealableMemfd(kMiB);
  const SharedMapping mapping(file.get(), kMiB);
  {
    const Memory memory = Must(Memory::Import(client, file.get(), mapping.bytes()));
    EXPECT_EQ(memory.bytes().data(), mapping.bytes().data());
    EXPECT_EQ(memory.size(), kMiB);
    const MemoryRegion region = Must(MemoryRegion::Register(memory, kMrFlagRemoteWrite));
    EXPECT_EQ(region.base_address().value, mapping.address());
    mapping.bytes().front() = std::byte{3};
  }
  mapping.bytes().back() = std::byte{4};
  EXPECT_EQ(mapping.bytes().front(), std::byte{3});
  char last = 0;
  ASSERT_EQ(pread(file.get(), &last, 1, kMiB - 1), 1);
  EXPECT_EQ(last, 4);
}

TEST_F(LibrnicdAddress, MappingOfAnotherFileIsRefusedAndNothingIsLeft) {
  const Client client = MustConnect();
  const UniqueFd file = MakeSealableMemfd(kMiB);
  const UniqueFd other = MakeSealableMemfd(kMiB);
  const SharedMapping mapping(other.get(), kMiB);
  ExpectRefused(Memory::Import(client, file.get(), mapping.bytes()).status(), "mapping");
  EXPECT_EQ(UsedBy(client, "memory_objects"), 0u);
}

// --- replaced there ---

// Posts one request and waits for its completion.
NtStatus PostAndWait(CompletionQueue& queue, QueuePair& pair, const WorkChain& chain) {
  EXPECT_EQ(Must(pair.Post(chain)).posted, 1u);
  const std::vector<Completion> completions = Must(queue.PollFor(1, kTimeout));
  return completions.empty() ? NtStatus::kIoTimeout : completions.front().status;
}

TEST_F(LibrnicdAddress, PeerReadsAndWritesThePagesThatWereReplaced) {
  const Client client = MustConnect();
  const Block block;
  const std::span<std::byte> pages = block.bytes().subspan(kClientPage, 8 * kClientPage);
  const std::vector<std::byte> before(pages.begin(), pages.end());
  const Memory buffer = MustAllocate(client, pages.size());
  {
    const Memory memory = Must(Memory::Replace(client, pages));
    EXPECT_EQ(memory.bytes().data(), pages.data());
    EXPECT_EQ(memory.size(), pages.size());
    EXPECT_TRUE(block.IsNumbered());
    const MemoryRegion region = Must(MemoryRegion::Register(memory, kMrFlagRemoteRead | kMrFlagRemoteWrite));
    const MemoryRegion local = Must(MemoryRegion::Register(buffer, kMrFlagLocalWrite));
    CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
    QueuePair pair = Must(QueuePair::Create(queue, queue, {}));
    ASSERT_TRUE(pair.Connect(pair.address()).ok());
    const RemoteMemory remote{.address = region.base_address(), .token = region.remote_token()};
    const Sge whole = Sge::Of(buffer.bytes(), local.local_token());
    EXPECT_EQ(PostAndWait(queue, pair, WorkChain().Read({whole}, remote, {})), NtStatus::kSuccess);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), buffer.bytes().begin()));
    buffer.bytes().back() = std::byte{0x5a};
    EXPECT_EQ(PostAndWait(queue, pair, WorkChain().Write({whole}, remote, {})), NtStatus::kSuccess);
    EXPECT_EQ(pages.back(), std::byte{0x5a});
  }
  EXPECT_EQ(pages.back(), std::byte{0x5a});
  pages.back() = before.back();
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_TRUE(IsPrivate(pages));
}

TEST_F(LibrnicdAddress, ReplacedPagesAreSharedWithChildrenUntilTheyAreGivenBack) {
  const Client client = MustConnect();
  const Block block;
  {
    const Memory memory = Must(Memory::Replace(client, block.bytes()));
    EXPECT_TRUE(InAChild([&] { return block.IsNumbered(); }));
    EXPECT_FALSE(IsPrivate(block.bytes()));
  }
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_TRUE(IsPrivate(block.bytes()));
}

TEST_F(LibrnicdAddress, PagesStayReplacedWhileARegionUsesThem) {
  const Client client = MustConnect();
  const Block block;
  std::optional<Memory> memory = Must(Memory::Replace(client, block.bytes()));
  std::optional<MemoryRegion> region = Must(MemoryRegion::Register(*memory, 0));
  memory.reset();
  EXPECT_FALSE(IsPrivate(block.bytes()));
  region.reset();
  EXPECT_TRUE(IsPrivate(block.bytes()));
}

TEST_F(LibrnicdAddress, ReleaseGivesThePagesBack) {
  const Client client = MustConnect();
  const Block block;
  Memory memory = Must(Memory::Replace(client, block.bytes()));
  EXPECT_TRUE(memory.Release().ok());
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_TRUE(IsPrivate(block.bytes()));
}

TEST_F(LibrnicdAddress, PagesAreReplacedAgainInOtherPieces) {
  const Client client = MustConnect();
  const Block block;
  {
    const Memory front = Must(Memory::Replace(client, block.bytes().first(kBlockBytes / 2)));
    const Memory back = Must(Memory::Replace(client, block.bytes().last(kBlockBytes / 4)));
    ExpectRefused(Memory::Replace(client, block.bytes()).status(), "pages");
  }
  const Memory whole = Must(Memory::Replace(client, block.bytes()));
  EXPECT_TRUE(block.IsNumbered());
}

TEST_F(LibrnicdAddress, PagesThatAreNotTheCallersAloneAreRefusedBeforeTheDaemonIsAsked) {
  const Client client = MustConnect();
  const Block block;
  const Memory shared = MustAllocate(client, kMiB);
  const uintptr_t stack_page = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) / kClientPage * kClientPage;
  const std::span<std::byte> stack(reinterpret_cast<std::byte*>(stack_page), kClientPage);
  ASSERT_EQ(madvise(block.bytes().data(), kClientPage, MADV_DONTFORK), 0);
  for (const std::span<std::byte> refused : {block.bytes().first(kClientPage), block.bytes().last(kClientPage - 1),
                                             block.bytes().subspan(1, kClientPage), shared.bytes(), stack}) {
    ExpectRefused(Memory::Replace(client, refused).status(), "pages");
  }
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_EQ(UsedBy(client, "memory_objects"), 1u);
}

class LibrnicdFullNode : public Librnicd {
 protected:
  LibrnicdFullNode() : Librnicd({"--max_memory_bytes=" + std::to_string(kClientPage)}) {}
};

TEST_F(LibrnicdFullNode, PagesStayTheCallersWhenTheDaemonRefusesItsOwn) {
  const Client client = MustConnect();
  const Block block;
  EXPECT_TRUE(FailedWith(Memory::Replace(client, block.bytes()).status(), ErrorReason::QUOTA_MEMORY_BYTES));
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_TRUE(IsPrivate(block.bytes()));
}

// With all that the library itself does with the heap; callers_memory_linux_test.cc has a thousand rounds.
TEST_F(LibrnicdAddress, HeapThatOtherThreadsUseSurvivesReplacements) {
  const Client client = MustConnect();
  const BusyHeap busy;
  for (size_t round = 0; round < 100; ++round) {
    const Block block(8 * kClientPage);
    const std::span<std::byte> pages = block.bytes().subspan(round % 4 * kClientPage, (round % 3 + 1) * kClientPage);
    Memory memory = Must(Memory::Replace(client, pages));
    ASSERT_TRUE(block.IsNumbered());
    pages.back() ^= std::byte{0xff};
    ASSERT_TRUE(memory.Release().ok());
    pages.back() ^= std::byte{0xff};
    ASSERT_TRUE(block.IsNumbered());
  }
}

TEST(LibrnicdAddressWithoutDaemon, ReplacedPagesOutliveTheDaemonAndAreGivenBack) {
  const auto daemon = Must(DaemonProcess::Start());
  const Client client = Must(Client::Connect({.socket_dir = daemon->socket_dir()}));
  const Block block;
  const Block never;
  {
    const Memory memory = Must(Memory::Replace(client, block.bytes()));
    const MemoryRegion region = Must(MemoryRegion::Register(memory, kMrFlagRemoteWrite));
    daemon->KillHard();
    EXPECT_TRUE(block.IsNumbered());
    EXPECT_FALSE(IsPrivate(block.bytes()));
    EXPECT_FALSE(Memory::Replace(client, never.bytes()).ok());
  }
  EXPECT_TRUE(block.IsNumbered());
  EXPECT_TRUE(IsPrivate(block.bytes()));
  EXPECT_TRUE(never.IsNumbered());
  EXPECT_TRUE(IsPrivate(never.bytes()));
}

}  // namespace
}  // namespace rnicd::test
