// Kernel behaviour that a memory object relies on: seals, and the facts about other files.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "daemon/core/memory/memory_object.h"
#include "daemon/core/memory/memory_object_fixture_test.h"

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

UniqueFd NotSealable() {
  UniqueFd file(memfd_create("owner", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), kSize), 0);
  return file;
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

// The purpose of the seal: each of these would remove pages that the card uses.
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
      {"file of the kernel", UniqueFd(open("/proc/self/maps", O_RDONLY)), ErrorReason::MEMORY_NOT_MEMORY},
      {"read-only memfd", ReadOnly(), ErrorReason::MEMORY_READ_ONLY},
      {"sealed against writing", Sealed(F_SEAL_WRITE), ErrorReason::MEMORY_WRITE_SEALED},
      {"sealed against future writing", Sealed(F_SEAL_FUTURE_WRITE), ErrorReason::MEMORY_WRITE_SEALED},
      {"not sealable", NotSealable(), ErrorReason::MEMORY_NOT_SEALABLE},
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

// The owner forbids further seals between attach and seal: the kernel then refuses ours, and nothing may be registered.
TEST_F(MemoryObjectTest, ASealTheKernelRefusesLeavesItUnusable) {
  const UniqueFd file = MemoryFile();
  const auto object = Attached(file);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
  EXPECT_TRUE(object->Release().ok());
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

}  // namespace
}  // namespace rnicd::core
