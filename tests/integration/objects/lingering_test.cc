// Memory that a client has released, and still has: it is charged until the last descriptor or mapping is gone, so that
// no client holds more than its limit by letting go of names only.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/hostile/raw_ring.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

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

// Sessions of a grant, and what is listed for its tenant.
class LingeringOfAGrant : public Lingering {
 protected:
  // With a lifetime of 0 it is valid until it is revoked.
  v1::CreateGrantResponse Create(uint64_t lifetime_ms = 0) {
    v1::CreateGrantRequest request;
    request.set_name("keeper");
    request.set_lifetime_ms(lifetime_ms);
    request.mutable_limits()->set_memory_bytes(kQuota);
    const auto created = CreateGrant(daemon(), request);
    ExpectOk(created);
    return created.response;
  }
  std::unique_ptr<RawClient> Open(const std::string& secret) {
    auto client = std::make_unique<RawClient>(daemon().rpc_socket());
    v1::OpenSessionRequest request;
    request.set_grant(secret);
    ExpectOk(client->Call(&SessionStub::OpenSession, request));
    return client;
  }
  UniqueFd MemoryOf(RawClient& client) {
    v1::AllocateMemoryRequest request;
    request.set_size(kPiece);
    const auto allocated = client.Call(&MemoryStub::AllocateMemory, request);
    ExpectOk(allocated);
    return FetchDescriptor(daemon().fd_socket(), allocated.response.fd_ticket());
  }
  // Bytes that linger of the tenants with that name, by their grants.
  std::map<uint64_t, uint64_t> Listed() {
    std::map<uint64_t, uint64_t> listed;
    for (const v1::TenantInfo& tenant : AdminTenants(daemon())) {
      for (const v1::ResourceUse& use : tenant.resources()) {
        if (tenant.name() == "grant/keeper" && use.name() == "lingering_bytes") {
          listed[tenant.grant_id()] = use.used();
        }
      }
    }
    return listed;
  }
  MetricsPage Page() { return MetricsPage(HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body); }
};

using LingeringByGrant = std::map<uint64_t, uint64_t>;

TEST_F(LingeringOfAGrant, IsListedUnderItUntilItIsGone) {
  const auto grant = Create();
  const auto client = Open(grant.secret());
  UniqueFd file = MemoryOf(*client);
  ASSERT_TRUE(ExpectOk(RevokeGrant(daemon(), grant.grant_id())));
  EXPECT_TRUE(Eventually([&] { return Listed() == LingeringByGrant{{grant.grant_id(), kPiece}}; }));
  EXPECT_EQ(Page().Value("rnicd_lingering_bytes{tenant=\"grant/keeper\"}"), kPiece);
  EXPECT_EQ(Page().faults(), "");
  file.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return Listed().empty(); }));
}

TEST_F(LingeringOfAGrant, OutlivesAnExpiryAndAnotherGrantOfTheName) {
  const auto old_grant = Create(500);
  UniqueFd file = MemoryOf(*Open(old_grant.secret()));
  EXPECT_TRUE(Eventually([&] { return AdminGrants(daemon()).empty(); }));
  const auto grant = Create();
  EXPECT_TRUE(
      Eventually([&] { return Listed() == LingeringByGrant{{grant.grant_id(), 0}, {old_grant.grant_id(), kPiece}}; }));
  EXPECT_EQ(Page().faults(), "");
  EXPECT_EQ(Page().Value("rnicd_quota_limit_bytes{tenant=\"grant/keeper\",resource=\"memory_bytes\"}"), kQuota)
      << "a grant that has ended limits nobody";
  file.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return Listed() == LingeringByGrant{{grant.grant_id(), 0}}; }));
  ExpectOk(RevokeGrant(daemon(), grant.grant_id()));
}

TEST_F(LingeringOfAGrant, HasTheMemoryOfARingToo) {
  const auto grant = Create();
  const auto client = Open(grant.secret());
  auto ring = RawRing::Open(*client, daemon().fd_socket());
  ASSERT_NE(ring, nullptr);
  const uint64_t bytes = ring->bytes().size();
  ASSERT_TRUE(ExpectOk(RevokeGrant(daemon(), grant.grant_id())));
  EXPECT_TRUE(Eventually([&] { return Listed() == LingeringByGrant{{grant.grant_id(), bytes}}; }));
  ring.reset();
  EXPECT_TRUE(Eventually([&] { return Listed().empty(); }));
}

}  // namespace
}  // namespace rnicd::test
