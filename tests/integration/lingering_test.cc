// Memory that a client has released, and still has: it is charged until the last descriptor or mapping is gone, so that
// no client holds more than its limit by letting go of names only.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/expect.h"
#include "tests/support/memory_file.h"
#include "tests/support/metrics_page.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"
#include "tests/support/wait.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kPiece = 256 << 10;
constexpr uint64_t kQuota = 4 * kPiece;

// Exists until destroyed, and then it is gone with all that it inherited.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      pause();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  const pid_t pid_;
};

class Lingering : public DaemonTest {
 protected:
  Lingering() : DaemonTest({kMetricsOnFreePort, "--max_memory_bytes=" + std::to_string(kQuota)}) {}

  static CallResult<v1::AllocateMemoryResponse> TryAllocate(TestSession& session, uint64_t size = kPiece) {
    v1::AllocateMemoryRequest request;
    request.set_size(size);
    return session.Call(&MemoryStub::AllocateMemory, request);
  }
  bool CanAllocate(uint64_t size = kPiece) {
    TestSession session(daemon());
    return TryAllocate(session, size).ok();
  }
  // The file of memory that is released, by a call or with its session.
  UniqueFd KeptFile(bool end_session) {
    TestSession session(daemon());
    const auto allocated = session.Allocate(kPiece);
    UniqueFd file = session.Fetch(allocated.fd_ticket());
    EXPECT_TRUE(ExpectOk(session.Seal(allocated.memory_id())));
    EXPECT_TRUE(end_session ? ExpectOk(session.CloseSession()) : ExpectOk(session.Release(allocated.memory_id())));
    return file;
  }
  double LingeringBytes() {
    const MetricsPage page(HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body);
    return page.Total("rnicd_lingering_bytes");
  }
};

TEST_F(Lingering, MemoryThatAClientKeepsIsNoRoomForMore) {
  std::vector<UniqueFd> kept;
  for (const bool end_session : {false, true, false, true}) {
    kept.push_back(KeptFile(end_session));
  }
  TestSession session(daemon());
  ExpectRefused(TryAllocate(session), ErrorReason::QUOTA_MEMORY_BYTES);
  EXPECT_EQ(LingeringBytes(), kQuota);
  kept.pop_back();
  ExpectOk(TryAllocate(session));
  ExpectRefused(TryAllocate(session), ErrorReason::QUOTA_MEMORY_BYTES);
  kept.clear();
  EXPECT_TRUE(Eventually([&] { return LingeringBytes() == 0; }));
}

TEST_F(Lingering, OperatorsSeeWhoseItIs) {
  const UniqueFd file = KeptFile(/*end_session=*/true);
  RawClient operators(daemon().admin_socket());
  const auto listed = operators.Call(&AdminStub::ListTenants, {});
  ASSERT_TRUE(ExpectOk(listed));
  ASSERT_EQ(listed.response.tenants_size(), 1) << "kept although it has no session any more";
  uint64_t lingering = 0;
  for (const v1::ResourceUse& use : listed.response.tenants(0).resources()) {
    lingering += use.name() == "lingering_bytes" ? use.used() : 0;
  }
  EXPECT_EQ(lingering, kPiece);
}

TEST_F(Lingering, AMappingInAChildIsEnough) {
  UniqueFd file = KeptFile(/*end_session=*/true);
  void* const mapping = mmap(nullptr, kPiece, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  {
    const Child child;
    munmap(mapping, kPiece);
    file.Reset(-1);
    EXPECT_FALSE(CanAllocate(kQuota));
  }
  EXPECT_TRUE(CanAllocate(kQuota));
}

// The daemon fills the holes of an imported file, and its pages are then no more the client's than allocated ones.
TEST_F(Lingering, HolesOfAnImportAreNoRoomForMore) {
  UniqueFd file(memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), kQuota), 0);
  TestSession session(daemon());
  const auto imported = session.Import(kQuota);
  ASSERT_TRUE(SendFd(daemon().fd_socket(), imported.fd_ticket(), file.get()).ok());
  ASSERT_TRUE(ExpectOk(session.Seal(imported.memory_id())));
  ASSERT_TRUE(ExpectOk(session.Release(imported.memory_id())));
  ExpectRefused(TryAllocate(session), ErrorReason::QUOTA_MEMORY_BYTES);
  file.Reset(-1);
  ExpectOk(TryAllocate(session));
}

}  // namespace
}  // namespace rnicd::test
