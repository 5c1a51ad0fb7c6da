#include "client/cpp/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fake_daemon_test.h"

namespace rnicd::inline client {
namespace {

constexpr uint64_t kSize = 1u << 20;

class MemoryTest : public testing::Test {
 protected:
  FakeDaemon daemon_;
  absl::StatusOr<Client> client_ = Client::Connect({.socket_dir = daemon_.socket_dir()});
};

TEST_F(MemoryTest, AllocatedMemoryIsMappedAndGivenBack) {
  {
    const auto memory = Memory::Allocate(*client_, {.size = kSize});
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->size(), kSize);
    EXPECT_EQ(memory->address().value, reinterpret_cast<uintptr_t>(memory->bytes().data()));
    EXPECT_EQ(memory->page_size(), PageSize::k4KiB);
    EXPECT_NE(memory->id(), MemoryObjectId{});
    memory->bytes().back() = std::byte{42};
    EXPECT_EQ(daemon_.state().LiveMemory(), 1u);
  }
  EXPECT_EQ(daemon_.state().LiveMemory(), 0u);
}

TEST_F(MemoryTest, ImportedMemoryIsTheCallersFile) {
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), kSize), 0);
  const auto memory = Memory::Import(*client_, file.get(), kSize);
  ASSERT_TRUE(memory.ok()) << memory.status();
  memory->bytes()[5] = std::byte{9};
  char byte = 0;
  ASSERT_EQ(pread(file.get(), &byte, 1, 5), 1);
  EXPECT_EQ(byte, 9);
}

TEST_F(MemoryTest, RefusedDescriptorLeavesNothingBehind) {
  daemon_.RefuseDescriptors(ErrorReason::MEMORY_NOT_SEALABLE);
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kSize), 0);
  EXPECT_TRUE(FailedWith(Memory::Import(*client_, file.get(), kSize).status(), ErrorReason::MEMORY_NOT_SEALABLE));
  EXPECT_TRUE(FailedWith(Memory::Allocate(*client_, {.size = kSize}).status(), ErrorReason::MEMORY_NOT_SEALABLE));
  EXPECT_EQ(daemon_.state().LiveMemory(), 0u);
}

TEST_F(MemoryTest, FileShorterThanItsMappingIsRefusedInsteadOfRaisingSigbus) {
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  EXPECT_TRUE(FailedWith(Memory::Import(*client_, file.get(), kSize).status(), ErrorReason::MEMORY_TOO_SHORT));
  EXPECT_EQ(daemon_.state().LiveMemory(), 0u);
}

TEST_F(MemoryTest, RefusedSizeCarriesTheField) {
  const absl::Status status = Memory::Allocate(*client_, {.size = 100}).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::MEMORY_SIZE_UNALIGNED));
  EXPECT_EQ(ErrorInfoOf(status).field, "size");
}

TEST_F(MemoryTest, EntryDescribesAPartAndRefusesWhatLiesOutside) {
  const auto memory = Memory::Allocate(*client_, {.size = kSize});
  const std::span<std::byte> bytes = memory->bytes();
  const auto entry = memory->Entry(bytes.subspan(4096, 100));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->memory_id, memory->id());
  EXPECT_EQ(entry->byte_offset, 4096u);
  EXPECT_EQ(entry->byte_count, 100u);
  EXPECT_EQ(entry->virtual_address.value, memory->address().value + 4096);
  EXPECT_TRUE(memory->Entry(bytes.last(1)).ok());

  const std::byte* const base = bytes.data();
  for (const std::span<const std::byte> outside :
       {std::span(base, kSize + 1), std::span(base - 1, 1), std::span(base + kSize, 1), std::span(base + 1, SIZE_MAX),
        std::span<const std::byte>()}) {
    EXPECT_TRUE(FailedWith(memory->Entry(outside).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  }
}

TEST_F(MemoryTest, MovedFromMemoryIsEmptyAndHarmless) {
  auto memory = Memory::Allocate(*client_, {.size = kSize});
  const Memory taken = *std::move(memory);
  EXPECT_TRUE(memory->bytes().empty());
  EXPECT_EQ(memory->id(), MemoryObjectId{});
  EXPECT_FALSE(memory->Entry(taken.bytes()).ok());
  EXPECT_FALSE(memory->Release().ok());
  EXPECT_EQ(daemon_.state().LiveMemory(), 1u);
}

TEST_F(MemoryTest, MemoryOutlivesTheClientAndKeepsTheSession) {
  auto memory = Memory::Allocate(*client_, {.size = kSize});
  client_ = absl::CancelledError();
  EXPECT_EQ(daemon_.state().sessions_open, 1);
  EXPECT_TRUE(memory->Release().ok());
  EXPECT_TRUE(memory->bytes().empty());
  EXPECT_EQ(daemon_.state().sessions_open, 0);
}

TEST_F(MemoryTest, ReleaseOfMemoryInUseIsRefusedAndChangesNothing) {
  auto memory = Memory::Allocate(*client_, {.size = kSize});
  const auto region = MemoryRegion::Register(*memory, 0);
  EXPECT_TRUE(FailedWith(memory->Release(), ErrorReason::MEMORY_IN_USE));
  EXPECT_EQ(memory->size(), kSize);
}

}  // namespace
}  // namespace rnicd::inline client
