#include "daemon/core/memory_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "daemon/core/memory_object_fixture_test.h"

namespace rnicd::core {
namespace {

UniqueFd Sealed(int seals) {
  UniqueFd file = MemoryFile();
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

UniqueFd ReadOnly() {
  const UniqueFd file = MemoryFile();
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY));
}

UniqueFd PipeEnd() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  close(ends[1]);
  return UniqueFd(ends[0]);
}

TEST_F(MemoryObjectTest, AnAllocatedFileIsSharedWithItsOwner) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  EXPECT_NE(fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
  const OwnersMapping mapping(file->get());
  ASSERT_TRUE(mapping.made());
  ASSERT_TRUE(object->Seal().ok());
  std::strcpy(mapping.bytes() + kPage, "written after the seal");
  const auto use = object->BeginUse();
  ASSERT_TRUE(use.ok());
  ASSERT_EQ(use->object().mapping().size(), kSize);
  EXPECT_STREQ(reinterpret_cast<const char*>(use->object().mapping().data()) + kPage, "written after the seal");
  EXPECT_EQ(object->page_bytes(), kPage);
}

// The purpose of the seal: each of these would pull pages away under the card.
TEST_F(MemoryObjectTest, AfterTheSealTheOwnerCannotPullPagesAway) {
  const UniqueFd file = MemoryFile();
  const auto object = Attached(file);
  ASSERT_EQ(ftruncate(file.get(), kSize / 2), -1) << "shrinking is over from the attach on";
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(write(file.get(), "x", 1), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_FALSE(OwnersMapping(file.get()).made());
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW), -1) << "no seal can be added";
}

TEST_F(MemoryObjectTest, AnAllocatedFileHasAFixedSizeBeforeItsOwnerSeesIt) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  const auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ftruncate(file->get(), 0), -1);
  EXPECT_EQ(ftruncate(file->get(), 2 * kSize), -1);
}

TEST_F(MemoryObjectTest, EveryFileThatIsNotTheOwnersWritableMemoryIsRefusedWithItsReason) {
  struct Row {
    const char* what;
    UniqueFd file;
    ErrorReason reason;
  };
  Row rows[] = {
      {"pipe", PipeEnd(), ErrorReason::MEMORY_NOT_MEMORY},
      {"directory", UniqueFd(open("/", O_RDONLY)), ErrorReason::MEMORY_NOT_MEMORY},
      {"device", UniqueFd(open("/dev/zero", O_RDWR)), ErrorReason::MEMORY_NOT_MEMORY},
      {"file on disk", UniqueFd(open("/proc/self/exe", O_RDONLY)), ErrorReason::MEMORY_NOT_MEMORY},
      {"file of the kernel", UniqueFd(open("/proc/self/maps", O_RDONLY)), ErrorReason::MEMORY_NOT_MEMORY},
      {"read-only memfd", ReadOnly(), ErrorReason::MEMORY_READ_ONLY},
      {"sealed against writing", Sealed(F_SEAL_WRITE), ErrorReason::MEMORY_WRITE_SEALED},
      {"sealed against future writing", Sealed(F_SEAL_FUTURE_WRITE), ErrorReason::MEMORY_WRITE_SEALED},
      {"not sealable", MemoryFile(kSize, 0), ErrorReason::MEMORY_NOT_SEALABLE},
      {"sealed against seals", Sealed(F_SEAL_SEAL), ErrorReason::MEMORY_NOT_SEALABLE},
      {"short by a page", MemoryFile(kSize - kPage), ErrorReason::MEMORY_TOO_SHORT},
      {"short by a byte", MemoryFile(kSize - 1), ErrorReason::MEMORY_TOO_SHORT},
      {"empty", MemoryFile(0), ErrorReason::MEMORY_TOO_SHORT},
  };
  const auto object = NewObject();
  for (Row& row : rows) {
    ASSERT_TRUE(row.file.valid()) << row.what;
    const int number = row.file.get();
    EXPECT_THAT(object->Attach(std::move(row.file)), FailsWith(row.reason)) << row.what;
    EXPECT_EQ(fcntl(number, F_GETFD), -1) << row.what << " must be closed";
    EXPECT_EQ(os_.live_mappings(), 0u) << row.what;
  }
  EXPECT_TRUE(object->Attach(MemoryFile()).ok()) << "a refusal leaves the object as it was";
}

TEST_F(MemoryObjectTest, AFileOfHugePagesMustBeUsedInWholePages) {
  UniqueFd file(memfd_create("owner", MFD_ALLOW_SEALING | MFD_HUGETLB));
  ASSERT_TRUE(file.valid()) << strerror(errno);
  ASSERT_EQ(ftruncate(file.get(), 1 << 30), 0) << strerror(errno);
  EXPECT_THAT(NewObject()->Attach(std::move(file)), FailsAt(ErrorReason::MEMORY_SIZE_UNALIGNED, "size"));
}

TEST_F(MemoryObjectTest, ALongerFileIsUsedUpToTheAnnouncedSize) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Attach(MemoryFile(10 * kSize)).ok());
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(object->BeginUse()->object().mapping().size(), kSize);
}

TEST_F(MemoryObjectTest, WhicheverCallFailsInAllocateNothingIsLeft) {
  const char* const methods[] = {"CreateMemoryFile", "AddSeals", "Map", "BindToNumaNode", "Populate"};
  for (const char* const method : methods) {
    os_.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    const auto object = NewObject();
    EXPECT_THAT(object->Allocate({.page_bytes = kPage, .numa_node = 0}),
                FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE))
        << method;
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
    EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED)) << method;
    EXPECT_TRUE(object->Release().ok()) << method;
    EXPECT_EQ(ChargedBytes(), 0u) << method;
  }
}

TEST_F(MemoryObjectTest, WhicheverCallFailsInAttachNothingIsLeft) {
  for (const char* const method : {"Inspect", "AddSeals", "Map"}) {
    os_.FailNext(method, MakeError(ErrorReason::INTERNAL_FAULT), 1);
    const auto object = NewObject();
    UniqueFd file = MemoryFile();
    const int number = file.get();
    EXPECT_THAT(object->Attach(std::move(file)), FailsWith(ErrorReason::INTERNAL_FAULT)) << method;
    EXPECT_EQ(fcntl(number, F_GETFD), -1) << method;
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
    EXPECT_TRUE(object->Attach(MemoryFile()).ok()) << method;
    EXPECT_TRUE(object->Release().ok()) << method;
    EXPECT_EQ(ChargedBytes(), 0u) << method;
  }
}

TEST_F(MemoryObjectTest, AnUnknownNumaNodeIsRefusedAndNothingIsLeft) {
  const auto object = NewObject();
  EXPECT_THAT(object->Allocate({.page_bytes = kPage, .numa_node = 1u << 20}),
              FailsAt(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node"));
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, BeforeTheAttachNothingCanBeDoneWithIt) {
  const auto object = NewObject();
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
  EXPECT_THAT(object->DuplicateFile().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
}

// Sealed, the file could not be mapped writable any more, and its owner has no mapping yet.
TEST_F(MemoryObjectTest, AnAllocatedFileIsNotSealedBeforeItsOwnerHasFetchedIt) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  EXPECT_THAT(object->Seal(), FailsAt(ErrorReason::MEMORY_NOT_ATTACHED, "memory_id"));
  const auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(OwnersMapping(file->get()).made()) << "the refusal has sealed nothing";
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, BeforeTheSealItCannotBeUsed) {
  EXPECT_THAT(Attached(MemoryFile())->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
}

TEST_F(MemoryObjectTest, IsAttachedOnceAndSealedOnce) {
  const auto object = Attached(MemoryFile());
  EXPECT_THAT(object->Attach(MemoryFile()), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_THAT(object->Allocate({.page_bytes = kPage}), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_THAT(object->DuplicateFile().status(), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_EQ(os_.live_mappings(), 1u);
}

// The owner forbids further seals between attach and seal: the kernel then refuses ours, and nothing may be registered.
TEST_F(MemoryObjectTest, ASealTheKernelRefusesLeavesItUnusable) {
  const UniqueFd file = MemoryFile();
  const auto object = Attached(file);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
  EXPECT_TRUE(object->Release().ok());
}

TEST_F(MemoryObjectTest, ASealThatFailedCanBeTriedAgain) {
  const auto object = Attached(MemoryFile());
  os_.FailNext("AddSeals", MakeError(ErrorReason::MEMORY_SEAL_REFUSED), 1);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, PagesTakenAwayBeforeTheSealAreBackAfterIt) {
  const UniqueFd file = MemoryFile();
  const auto object = Attached(file);
  ASSERT_EQ(fallocate(file.get(), 0, 0, kSize), 0);
  ASSERT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage), 0);
  ASSERT_TRUE(object->Seal().ok());
  struct stat sealed = {};
  ASSERT_EQ(fstat(file.get(), &sealed), 0);
  EXPECT_EQ(sealed.st_blocks, static_cast<blkcnt_t>(kSize / 512));
}

TEST_F(MemoryObjectTest, ASealThatFoundNoPagesCanBeTriedAgain) {
  const auto object = Attached(MemoryFile());
  os_.FailNext("Populate", MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, CannotBeReleasedWhileItIsUsed) {
  const auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  {
    auto first = object->BeginUse();
    const MemoryObject::Use moved = *std::move(first);
    const auto second = object->BeginUse();
    EXPECT_THAT(object->Release(), FailsAt(ErrorReason::MEMORY_IN_USE, "memory_id"));
  }
  EXPECT_EQ(ChargedBytes(), kSize);
  EXPECT_TRUE(object->Release().ok());
  EXPECT_EQ(ChargedBytes(), 0u);
  EXPECT_EQ(ledger_->used(Resource::kMemoryObjects), 0u);
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, AReleasedObjectCannotBeUsedOrReleasedAgain) {
  const auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  ASSERT_TRUE(object->Release().ok());
  EXPECT_FALSE(object->BeginUse().ok());
  EXPECT_THAT(object->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  EXPECT_THAT(object->Attach(MemoryFile()), FailsWith(ErrorReason::MEMORY_IN_USE));
}

TEST_F(MemoryObjectTest, ReleasingClosesTheFile) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  const int number = file->get() - 1;
  ASSERT_NE(fcntl(number, F_GETFD), -1) << "the object's own descriptor was made just before its duplicate";
  ASSERT_TRUE(object->Release().ok());
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST_F(MemoryObjectTest, AnObjectThatIsDroppedUnmapsAndRefunds) {
  Attached(MemoryFile()).reset();
  EXPECT_EQ(os_.live_mappings(), 0u);
  EXPECT_EQ(ChargedBytes(), 0u);
}

TEST_F(MemoryObjectTest, AUseKeepsTheMappingAliveBeyondTheLastOwner) {
  auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  {
    const auto use = object->BeginUse();
    ASSERT_TRUE(use.ok());
    object.reset();
    EXPECT_EQ(os_.live_mappings(), 1u);
    use->object().mapping()[0] = std::byte{1};
  }
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, AFileThatIsImportedTwiceIsOneFileWhereItsPagesArePaid) {
  const PinBook book = PinsOf(ledger_);
  const auto attached = [&](const UniqueFd& file) {
    auto object = UnchargedMemory(os_, kSize, book);
    EXPECT_TRUE(object->Attach(Duplicate(file)).ok());
    return object;
  };
  const UniqueFd file = MemoryFile();
  const auto first = attached(file);
  const auto second = attached(file);
  const auto other = attached(MemoryFile());
  const auto charge = [&](const std::shared_ptr<MemoryObject>& object, uint64_t page) {
    return *PinCharge::Take(ledger_, {{.file = object->pins(), .first = page, .count = 2}}, 2);
  };
  PinCharge of_first = charge(first, 0);
  PinCharge of_second = charge(second, 1);
  EXPECT_EQ(ledger_->used(Resource::kPinnedBytes), 3 * kPage);
  PinCharge of_other = charge(other, 0);
  EXPECT_EQ(ledger_->used(Resource::kPinnedBytes), 5 * kPage);
  of_first.Refund();
  EXPECT_EQ(ledger_->used(Resource::kPinnedBytes), 4 * kPage);
  of_second.Refund();
  of_other.Refund();
  EXPECT_EQ(ledger_->used(Resource::kPinnedBytes), 0u);
}

TEST_F(MemoryObjectTest, OfRacingCallsTheLosersAreRefusedAndNothingLeaks) {
  for (int round = 0; round < 50; ++round) {
    const auto object = NewObject();
    std::atomic<int> attached{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&] { attached += object->Attach(MemoryFile()).ok() ? 1 : 0; });
    }
    threads.emplace_back([&] { (void)object->Seal(); });
    threads.emplace_back([&] { (void)object->Release(); });
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_LE(attached, 1);
    (void)object->Release();
    ASSERT_EQ(os_.live_mappings(), 0u);
    ASSERT_EQ(ChargedBytes(), 0u);
  }
}

}  // namespace
}  // namespace rnicd::core
