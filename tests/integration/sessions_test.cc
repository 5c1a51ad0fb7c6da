// Sessions: who may open and join one, and when its objects are reclaimed.
#include <signal.h>

#include <string>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class Sessions : public DaemonTest {
 protected:
  // A client of the workload user with `pages` registered. Null after a failure.
  std::unique_ptr<ChildClient> ClientWithPages(uint64_t pages) {
    auto client = ChildClient::Start(daemon(), WorkloadUid());
    if (client != nullptr) {
      const std::string size = std::to_string(pages * kPage);
      client->MustRun("open child");
      const std::string memory = client->MustRun("alloc " + size).values["memory"];
      client->MustRun("touch " + size);
      client->MustRun("register " + memory + " " + size + " 0");
      EXPECT_EQ(AdminStatus(daemon()).registered_pages(), pages);
    }
    return client;
  }

  CallOutcome Join(RawClient& client, uint64_t session_id) {
    v1::JoinSessionRequest request;
    request.set_session_id(session_id);
    return client.Call(&SessionStub::JoinSession, request);
  }
};

TEST_F(Sessions, OpenTellsWhatTheClientNeeds) {
  RawClient client(daemon().rpc_socket());
  const auto opened = client.Call(&SessionStub::OpenSession, {});
  ExpectOk(opened);
  EXPECT_NE(opened.response.session_id(), 0u);
  EXPECT_EQ(opened.response.ndk_version().major(), 1u);
  EXPECT_EQ(daemon().socket_dir() + "/" + opened.response.fd_socket_name(), daemon().fd_socket());
}

TEST_F(Sessions, SecondConnectionOfTheProcessJoins) {
  RawClient second(daemon().rpc_socket());
  uint64_t memory = 0;
  {
    TestSession first(daemon());
    memory = first.SealedMemory(kPage);
    ExpectOk(Join(second, first.session_id()));
    EXPECT_EQ(AdminSessions(daemon()).at(0).connections(), 2u);
  }
  // The first connection is closed; the session continues on the second one, with its objects.
  v1::ReleaseMemoryRequest release;
  release.set_memory_id(memory);
  ExpectOk(second.Call(&MemoryStub::ReleaseMemory, release));
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 1u);
}

TEST_F(Sessions, AnotherProcessCannotJoin) {
  TestSession session(daemon());
  for (const uid_t uid : {geteuid(), WorkloadUid()}) {
    const auto stranger = ChildClient::Start(daemon(), uid);
    ASSERT_NE(stranger, nullptr);
    EXPECT_EQ(stranger->Run("join " + std::to_string(session.session_id())).reason, "SESSION_NOT_FOUND");
  }
  RawClient second(daemon().rpc_socket());
  ExpectRefused(Join(second, session.session_id() + 1), ErrorReason::SESSION_NOT_FOUND, "session_id");
  ExpectRefused(Join(second, 0), ErrorReason::SESSION_NOT_FOUND, "session_id");
}

TEST_F(Sessions, AnotherSessionsObjectsDoNotExist) {
  TestSession owner(daemon());
  TestSession other(daemon());
  const uint64_t memory = owner.SealedMemory(kPage);
  const uint64_t mr = owner.CreateMr();
  owner.RegisterWhole(mr, memory, kPage);
  ExpectRefused(other.RemoteToken(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(other.CloseMr(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(other.ClosePd(owner.pd_id()), ErrorReason::OBJECT_NOT_FOUND, "pd_id");
  ExpectRefused(other.Register(RegisterRequest(other.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage)),
                ErrorReason::OBJECT_NOT_FOUND, "mdl_chain[0].memory_id");
  ExpectOk(owner.LocalToken(mr));
}

TEST_F(Sessions, CloseReclaimsAndReports) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(8 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 8 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 2 * kPage);
  session.CreateMr();
  const auto closed = session.CloseSession();
  ExpectOk(closed);
  EXPECT_EQ(closed.response.reclaimed_regions(), 3u);
  EXPECT_EQ(closed.response.reclaimed_pinned_bytes(), 8 * kPage);
  EXPECT_EQ(closed.response.reclaimed_memory_bytes(), 8 * kPage);
  // Everything was reclaimed before the response.
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.sessions(), 0u);
  EXPECT_EQ(status.registered_pages(), 0u);
  EXPECT_EQ(status.device_regions(), 0u);
  EXPECT_EQ(Used(status, "memory_bytes"), 0u);
}

TEST_F(Sessions, ConnectionIsFreeAgainAfterAClose) {
  TestSession session(daemon());
  ExpectOk(session.CloseSession());
  ExpectRefused(session.Call(&SessionStub::GetSession, {}), ErrorReason::SESSION_REQUIRED);
  const auto second = session.Call(&SessionStub::OpenSession, {});
  ExpectOk(second);
  EXPECT_NE(second.response.session_id(), session.session_id());
  EXPECT_EQ(session.Call(&SessionStub::GetSession, {}).response.session_id(), second.response.session_id());
}

TEST_F(Sessions, WorkloadsNeedNoPrivilege) {
  const auto client = ClientWithPages(1);
  ASSERT_NE(client, nullptr);
  const ChildAnswer identity = client->MustRun("identity");
  EXPECT_EQ(identity.number("uid"), WorkloadUid());
  if (WorkloadUid() != 0) {
    EXPECT_EQ(identity.values.at("capabilities"), "0000000000000000");
  }
}

TEST_F(Sessions, ForkedChildDoesNotKeepTheSession) {
  const auto client = ClientWithPages(4);
  ASSERT_NE(client, nullptr);
  const auto heir = static_cast<pid_t>(client->MustRun("fork").number("pid"));
  ASSERT_GT(heir, 0);
  client->KillHard();
  EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 0; }));
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 0u);
  EXPECT_EQ(kill(heir, 0), 0) << "the child that holds the socket should have been alive all the time";
  kill(heir, SIGKILL);
}

TEST_F(Sessions, OperatorMethodsAreNotForWorkloads) {
  RawClient client(daemon().rpc_socket());
  ExpectRefused(client.Call(&AdminStub::GetStatus, {}), ErrorReason::METHOD_NOT_PERMITTED);
  ExpectRefused(client.Call(&AdminStub::ListSessions, {}), ErrorReason::METHOD_NOT_PERMITTED);
  ExpectRefused(client.Call(&AdminStub::ListRegions, {}), ErrorReason::METHOD_NOT_PERMITTED);
}

// With one user only, the operator is that user, and has access.
TEST_F(Sessions, AdminSocketIsClosedToOtherUsers) {
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->Run("admin " + daemon().admin_socket()).ok, !TwoUids());
}

TEST_F(Sessions, PagesOfTheListsAreCutAndContinued) {
  TestSession session(daemon());
  for (int count = 0; count < 5; ++count) {
    session.CreateMr();
  }
  RawClient admin(daemon().admin_socket());
  v1::ListRegionsRequest request;
  request.set_page_size(2);
  size_t seen = 0;
  size_t pages = 0;
  do {
    const auto page = admin.Call(&AdminStub::ListRegions, request);
    ExpectOk(page);
    EXPECT_LE(page.response.regions_size(), 2);
    seen += static_cast<size_t>(page.response.regions_size());
    ++pages;
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_EQ(seen, 5u);
  EXPECT_EQ(pages, 3u);
  request.set_page_token("not a token");
  ExpectRefused(admin.Call(&AdminStub::ListRegions, request), ErrorReason::FIELD_OUT_OF_RANGE, "page_token");
  request.set_page_token("");
  request.set_page_size(10001);
  ExpectRefused(admin.Call(&AdminStub::ListRegions, request), ErrorReason::FIELD_OUT_OF_RANGE, "page_size");
}

}  // namespace
}  // namespace rnicd::test
