#include "daemon/core/memory/lingering_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <ostream>
#include <string>
#include <utility>

#include "daemon/core/memory/memory_object_fixture_test.h"

namespace rnicd::core {
namespace {

bool SendDescriptor(int socket, int fd) {
  char byte = 0;
  iovec part = {.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fd));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &message, 0) == 1;
}

// Ways to hold a file without the descriptor that was handed over. Each returns an object that releases the file when
// destroyed.
using Holder = std::shared_ptr<void>;

Holder HoldDescriptor(int fd) { return std::make_shared<UniqueFd>(dup(fd)); }

Holder HoldMapping(int fd) { return std::make_shared<OwnersMapping>(fd); }

Holder HoldPath(int fd) {
  return std::make_shared<UniqueFd>(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_PATH | O_CLOEXEC));
}

Holder HoldInASocket(int fd) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto held = std::make_shared<std::pair<UniqueFd, UniqueFd>>(ends[0], ends[1]);
  EXPECT_TRUE(SendDescriptor(ends[0], fd));
  return held;
}

struct HolderRow {
  const char* name;
  Holder (*hold)(int fd);
};

void PrintTo(const HolderRow& row, std::ostream* out) { *out << row.name; }

class LingeringTest : public MemoryObjectTest, public testing::WithParamInterface<HolderRow> {
 protected:
  uint64_t LingeringBytes() const { return ledger_->used(Resource::kLingeringBytes); }

  void ExpectLingersUntilLetGo(Holder holder) {
    lingering_.Sweep();
    EXPECT_EQ(ChargedBytes(), kSize);
    EXPECT_EQ(LingeringBytes(), kSize);
    EXPECT_EQ(ledger_->used(Resource::kMemoryObjects), 1u);
    holder.reset();
    lingering_.Sweep();
    EXPECT_TRUE(ledger_->empty());
  }
};

TEST_P(LingeringTest, ReleasedMemoryIsChargedUntilItsClientLetsGo) {
  auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  Holder holder = GetParam().hold(file->get());
  file->Reset(-1);
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(LingeringBytes(), 0u);
  ASSERT_TRUE(object->Release().ok());
  object.reset();
  ExpectLingersUntilLetGo(std::move(holder));
}

TEST_P(LingeringTest, AnImportWithHolesIsChargedUntilItsClientLetsGo) {
  UniqueFd file = MemoryFile();
  Holder holder = GetParam().hold(file.get());
  auto object = NewObject();
  ASSERT_TRUE(object->Attach(std::move(file)).ok());
  ASSERT_TRUE(object->Seal().ok());
  ASSERT_TRUE(object->Release().ok());
  ExpectLingersUntilLetGo(std::move(holder));
}

constexpr HolderRow kHolders[] = {
    {"Descriptor", HoldDescriptor}, {"Mapping", HoldMapping}, {"Path", HoldPath}, {"SocketQueue", HoldInASocket}};
INSTANTIATE_TEST_SUITE_P(Each, LingeringTest, testing::ValuesIn(kHolders),
                         [](const auto& row) { return row.param.name; });

// Its control group pays for them, before, while and after they are registered.
TEST_F(MemoryObjectTest, PagesThatAClientBroughtAreItsOwnAfterTheRelease) {
  const UniqueFd file = MemoryFile();
  ASSERT_EQ(fallocate(file.get(), 0, 0, kSize), 0);
  const auto object = Attached(file);
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(ChargedBytes(), kSize);
  ASSERT_TRUE(object->Release().ok());
  EXPECT_TRUE(ledger_->empty());
}

TEST_F(MemoryObjectTest, AHoleBehindTheAnnouncedSizeCounts) {
  const UniqueFd file = MemoryFile(2 * kSize);
  ASSERT_EQ(fallocate(file.get(), 0, kSize, kSize), 0) << "the half that is not used";
  const auto object = Attached(file);
  ASSERT_TRUE(object->Seal().ok());
  ASSERT_TRUE(object->Release().ok());
  EXPECT_EQ(ChargedBytes(), kSize);
}

TEST_F(MemoryObjectTest, MemoryThatNobodyFetchedIsRefundedAtOnce) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  ASSERT_TRUE(object->Release().ok());
  EXPECT_TRUE(ledger_->empty());
}

TEST_F(MemoryObjectTest, MemoryThatIsNotReleasedLingersTooWhenItsLastOwnerGoes) {
  auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  auto file = object->DuplicateFile();
  object.reset();
  EXPECT_EQ(ChargedBytes(), kSize);
  file->Reset(-1);
  lingering_.Sweep();
  EXPECT_TRUE(ledger_->empty());
}

TEST_F(MemoryObjectTest, AFileThatWasAllocatedAndImportedIsRefundedTwice) {
  const auto allocated = NewObject();
  ASSERT_TRUE(allocated->Allocate({.page_bytes = kPage}).ok());
  UniqueFd file = *allocated->DuplicateFile();
  const auto imported = Attached(file);
  ASSERT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kSize), 0);
  ASSERT_TRUE(imported->Seal().ok());
  ASSERT_TRUE(allocated->Release().ok());
  ASSERT_TRUE(imported->Release().ok());
  EXPECT_EQ(ChargedBytes(), 2 * kSize);
  file.Reset(-1);
  lingering_.Sweep();
  EXPECT_TRUE(ledger_->empty());
}

// The kernel has a limit on watches.
TEST_F(MemoryObjectTest, MemoryThatCannotBeWatchedIsNotMade) {
  class NoWatch final : public FileWatch {
    absl::StatusOr<Id> Add(int /*fd*/) override { return MakeError(ErrorReason::INTERNAL_FAULT); }
    std::vector<Id> TakeEnded() override { return {}; }
  } no_watch;
  LingeringMemory lingering(no_watch);
  MemoryObject object(os_, lingering, kSize, PinsOf(ledger_), {});
  EXPECT_THAT(object.Allocate({.page_bytes = kPage}), FailsWith(ErrorReason::INTERNAL_FAULT));
  EXPECT_THAT(object.Attach(MemoryFile()), FailsWith(ErrorReason::INTERNAL_FAULT));
  EXPECT_EQ(os_.live_mappings(), 0u);
}

}  // namespace
}  // namespace rnicd::core
