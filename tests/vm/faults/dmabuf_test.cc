// Dma-bufs of a real exporter, vgem. rxe of Linux 6.1 cannot register one, so the refusal is what is tested here; that
// a card which can is asked as it must be is tests/dmabuf.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/vgem.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kSize = 16 * kPage;

std::string KernelRelease() {
  utsname kernel = {};
  EXPECT_EQ(uname(&kernel), 0);
  return kernel.release;
}

class Dmabuf : public FaultTest {
 protected:
  Dmabuf() { EXPECT_NE(card_, "") << "the guest has no vgem"; }

  UniqueFd Buffer(uint64_t bytes = kSize) const { return MakeDmabuf(card_, bytes); }
  FdAnswer Send(TestSession& session, const UniqueFd& file, uint64_t announced = kSize) {
    memory_id_ = 0;
    const v1::ImportMemoryResponse announcement = session.Import(announced);
    memory_id_ = announcement.memory_id();
    return SendFd(daemon().fd_socket(), announcement.fd_ticket(), file.get());
  }
  // An attached and sealed import of the buffer.
  uint64_t Imported(TestSession& session, const UniqueFd& file) {
    ExpectFdOk(Send(session, file));
    const auto sealed = session.Seal(memory_id_);
    ExpectOk(sealed);
    EXPECT_TRUE(sealed.response.dmabuf());
    EXPECT_EQ(sealed.response.size(), kSize);
    return memory_id_;
  }
  static void ExpectNotCapable(TestSession& session, uint64_t memory_id) {
    const auto refused =
        session.Register(RegisterRequest(session.CreateMr(), {MdlEntry(memory_id, 0, kSize, kBase)}, kSize));
    ExpectRefused(refused, ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[0].memory_id");
    EXPECT_NE(refused.detail.message().find("adapter " + AdapterUnderTest() + " on kernel " + KernelRelease()),
              std::string::npos)
        << refused.detail.message();
  }

  const std::string card_ = VgemPath();
  uint64_t memory_id_ = 0;
};

TEST_F(Dmabuf, IsRecognizedByTheKernelAlone) {
  const UniqueFd buffer = Buffer();
  const auto facts = SystemOs().Inspect(buffer.get());
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->is_dmabuf);
  EXPECT_FALSE(facts->is_memory_file);
  EXPECT_TRUE(facts->is_read_write);
  EXPECT_EQ(facts->size, kSize);
  // Charging depends on this: a buffer is recognized by any descriptor and never mistaken for another.
  const UniqueFd duplicate(dup(buffer.get()));
  EXPECT_EQ(SystemOs().Inspect(duplicate.get())->inode, facts->inode);
  EXPECT_NE(SystemOs().Inspect(Buffer().get())->inode, facts->inode);
}

TEST_F(Dmabuf, IsImportedAndItsRegistrationRefusedWithCardAndKernel) {
  TestSession session(daemon());
  const uint64_t memory_id = Imported(session, Buffer());
  EXPECT_EQ(session.Use("memory_bytes").used(), kSize);
  // The protection domain is made by then, with the placeholder that each has.
  ExpectNotCapable(session, memory_id);
  const KernelObjects objects = Objects();
  ExpectNotCapable(session, memory_id);
  EXPECT_EQ(Objects(), objects) << Describe(Objects());
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(session.Use("pending_requests").used(), 0u);
  ExpectOk(session.Release(memory_id));
  EXPECT_EQ(session.Use("memory_bytes").used(), 0u);
}

TEST_F(Dmabuf, OfAClientWithoutPrivilegesIsRefusedInTheSameWay) {
  ASSERT_EQ(chmod(card_.c_str(), 0666), 0);
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  client->MustRun("open");
  ChildAnswer identity = client->MustRun("identity");
  EXPECT_NE(identity.number("uid"), 0u);
  EXPECT_EQ(identity.values["capabilities"], "0000000000000000");
  const std::string memory_id = client->MustRun("dmabuf " + card_ + " " + std::to_string(kSize)).values["memory"];
  const ChildAnswer refused = client->Run("register " + memory_id + " " + std::to_string(kSize) + " 0");
  EXPECT_EQ(refused.reason, "DEVICE_NOT_CAPABLE");
}

// The fixture looks for what is left.
TEST_F(Dmabuf, OfAClientThatIsKilledIsGone) {
  ASSERT_EQ(chmod(card_.c_str(), 0666), 0);
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  client->MustRun("open");
  for (int buffer = 0; buffer < 50; ++buffer) {
    client->MustRun("dmabuf " + card_ + " " + std::to_string(kSize));
  }
  client->KillHard();
}

TEST_F(Dmabuf, ThatNobodyElseHasAnyMoreIsStillOne) {
  TestSession session(daemon());
  UniqueFd buffer = Buffer();
  ExpectFdOk(Send(session, buffer));
  buffer.Reset(-1);
  ExpectOk(session.Seal(memory_id_));
  ExpectNotCapable(session, memory_id_);
}

TEST_F(Dmabuf, OfAnotherSizeThanAnnouncedIsRefused) {
  TestSession session(daemon());
  const UniqueFd buffer = Buffer();
  ExpectFdRefused(Send(session, buffer, kSize + kPage), ErrorReason::MEMORY_TOO_SHORT);
  ExpectFdRefused(Send(session, buffer, kSize - kPage), ErrorReason::FIELD_OUT_OF_RANGE);
  ExpectRefused(session.Seal(memory_id_), ErrorReason::OBJECT_NOT_FOUND, "memory_id");
  EXPECT_EQ(session.Use("memory_bytes").used(), 0u);
}

TEST_F(Dmabuf, ForReadingOnlyIsRefused) {
  TestSession session(daemon());
  ExpectFdRefused(Send(session, MakeDmabuf(card_, kSize, /*writable=*/false)), ErrorReason::MEMORY_READ_ONLY);
  const UniqueFd buffer = Buffer();
  const UniqueFd path_only(open(("/proc/self/fd/" + std::to_string(buffer.get())).c_str(), O_PATH | O_CLOEXEC));
  ASSERT_TRUE(path_only.valid());
  ExpectFdRefused(Send(session, path_only), ErrorReason::MEMORY_READ_ONLY);
}

TEST_F(Dmabuf, IsNotItsCard) {
  TestSession session(daemon());
  const UniqueFd opened(open(card_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(opened.valid());
  ExpectFdRefused(Send(session, opened), ErrorReason::MEMORY_NOT_MEMORY);
}

TEST_F(Dmabuf, HasNoLogicalAddressesAndNothingBesideIt) {
  TestSession session(daemon());
  const uint64_t memory_id = Imported(session, Buffer());
  v1::BuildLamRequest lam;
  lam.set_adapter_id(session.adapter_id());
  *lam.add_mdl_chain() = MdlEntry(memory_id, 0, kSize, kBase);
  lam.set_length(kSize);
  ExpectRefused(session.Call(&MemoryStub::BuildLam, lam), ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[0].memory_id");
  const uint64_t other = session.SealedMemory(kSize);
  ExpectRefused(session.Register(RegisterRequest(
                    session.CreateMr(),
                    {MdlEntry(other, 0, kSize, kBase), MdlEntry(memory_id, 0, kSize, kBase + kSize)}, 2 * kSize)),
                ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[1].memory_id");
}

TEST_F(Dmabuf, IsMappedAndNamedByTheLibrary) {
  const auto client = Client::Connect(
      {.socket_dir = daemon().socket_dir(), .adapter_name = AdapterUnderTest(), .data_path = rnicd::DataPath::kCalls});
  ASSERT_TRUE(client.ok()) << client.status();
  const UniqueFd buffer = Buffer();
  auto memory = Memory::Import(*client, buffer.get(), kSize);
  ASSERT_TRUE(memory.ok()) << memory.status();
  memory->bytes()[kPage] = std::byte{42};
  EXPECT_EQ(memory->bytes()[kPage], std::byte{42});
  const absl::Status refused = MemoryRegion::Register(*memory, kMrFlagRemoteWrite).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_NE(refused.message().find(KernelRelease()), absl::string_view::npos) << refused;
}

}  // namespace
}  // namespace rnicd::test
