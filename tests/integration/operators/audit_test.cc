// The audit log of a running daemon: a line for every grant and refusal, and no secret in it or in any other log.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/operators/audit_lines.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/leak_finder.h"
#include "tests/support/process/child_client.h"
#include "tests/support/queue_client.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Line = AuditLines::Json;

constexpr uint64_t kSessionRegionsMax = 3;
constexpr uint64_t kConnectionsMax = 64;
constexpr uint64_t kLeastRate = 1024;
// Calls of each kind by one attacker.
constexpr uint64_t kFlood = 1000;
constexpr char kLabel[] = "a-label-is-the-clients";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A separate daemon with an audit log and the most verbose main log.
class Audit : public testing::Test {
 protected:
  void SetUp() override { Start(); }

  void Start(const std::vector<std::string>& more_flags = {}) {
    std::vector<std::string> flags = {"--audit_log=" + path(), "--log_level=debug"};
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    auto started = DaemonProcess::Start({.flags = flags, .directory = directory_});
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
  }
  // All lines are in the file once the daemon has ended.
  void StopDaemon() {
    const absl::Status stopped = daemon_->Stop();
    EXPECT_TRUE(stopped.ok()) << stopped;
    log_ += daemon_->log();
  }

  std::string path() const { return directory_->path() + "/audit.log"; }
  DaemonProcess& daemon() { return *daemon_; }

  const std::shared_ptr<TempDir> directory_ = std::make_shared<TempDir>();
  std::unique_ptr<DaemonProcess> daemon_;
  std::string log_;
};

v1::CreateGrantResponse MustCreateGrant(DaemonProcess& daemon, const std::string& name) {
  v1::CreateGrantRequest request;
  request.set_name(name);
  const auto created = CreateGrant(daemon, request);
  ExpectOk(created);
  return created.response;
}

CallResult<v1::OpenSessionResponse> OpenWithGrant(RawClient& client, const std::string& secret) {
  v1::OpenSessionRequest request;
  request.set_label(kLabel);
  request.set_grant(secret);
  return client.Call(&SessionStub::OpenSession, request);
}

TEST_F(Audit, Property16TheStoryOfASessionIsTold) {
  uint64_t id = 0;
  uint64_t memory = 0;
  uint64_t region = 0;
  {
    TestSession session(daemon(), kLabel);
    id = session.session_id();
    memory = session.SealedMemory(4 * kPage);
    region = session.CreateMr();
    session.RegisterWhole(region, memory, 4 * kPage);
    ExpectOk(session.RemoteToken(region));
    ExpectOk(session.Call(&SessionStub::GetSession, {}));
    ExpectOk(session.Deregister(region));
    ExpectRefused(session.Deregister(region), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
    ExpectOk(session.CloseMr(region));
    ExpectOk(session.Release(memory));
    ExpectOk(session.CloseSession());
  }
  StopDaemon();
  const AuditLines lines(path());
  EXPECT_THAT(
      lines.StoryOf(id),
      ElementsAre("SessionService.OpenSession", "MemoryService.AllocateMemory", "fd", "MemoryService.SealMemory",
                  "AdapterService.OpenAdapter", "MemoryService.CreatePd", "MemoryService.CreateMr",
                  "MemoryService.RegisterMr", "MemoryService.GetRemoteToken", "MemoryService.DeregisterMr",
                  "MemoryService.DeregisterMr!REGION_NOT_REGISTERED", "MemoryService.CloseMr",
                  "MemoryService.ReleaseMemory", "session.end", "SessionService.CloseSession"));
  const std::string session_id = std::to_string(id);
  for (const Line& line : lines.Where({{"session_id", session_id}})) {
    EXPECT_EQ(line["pid"], getpid()) << line;
    EXPECT_EQ(line["uid"], geteuid()) << line;
    EXPECT_EQ(line["gid"], getegid()) << line;
    EXPECT_EQ(line["role"], "workload") << line;
    EXPECT_NE(line["tenant"], "") << line;
  }
  const std::string named_region = "mr_id=" + std::to_string(region);
  const std::string named_memory = "memory_id=" + std::to_string(memory);
  EXPECT_EQ(lines.Only({{"what", "MemoryService.AllocateMemory"}})["object"], named_memory);
  EXPECT_EQ(lines.Only({{"what", "fd"}})["object"], named_memory);
  EXPECT_EQ(lines.Only({{"what", "MemoryService.RegisterMr"}})["object"], named_region);
  const Line refused = lines.Only({{"what", "MemoryService.DeregisterMr"}, {"result", "refused"}});
  EXPECT_EQ(refused["field"], "mr_id");
  EXPECT_EQ(refused["object"], named_region);
  EXPECT_EQ(lines.Only({{"what", "session.end"}})["note"], "closed");
}

TEST_F(Audit, Property16RefusalsAreToldWhateverTheMethod) {
  {
    RawClient client(daemon().rpc_socket());
    ExpectRefused(client.Call(&SessionStub::GetSession, {}), ErrorReason::SESSION_REQUIRED);
    ExpectRefused(client.Call(&AdminStub::ListSessions, {}), ErrorReason::METHOD_NOT_PERMITTED);
    ExpectOk(client.Call(&AdapterStub::ListAdapters, {}));
    ExpectFdRefused(FetchFd(daemon().fd_socket(), std::string(16, 'x')), ErrorReason::TICKET_UNKNOWN);
  }
  StopDaemon();
  const AuditLines lines(path());
  EXPECT_EQ(lines.Only({{"what", "SessionService.GetSession"}})["reason"], "SESSION_REQUIRED");
  EXPECT_EQ(lines.Only({{"what", "AdminService.ListSessions"}})["reason"], "METHOD_NOT_PERMITTED");
  EXPECT_THAT(lines.Where({{"what", "AdapterService.ListAdapters"}}), IsEmpty());
  const Line packet = lines.Only({{"what", "fd"}});
  EXPECT_EQ(packet["reason"], "TICKET_UNKNOWN");
  EXPECT_EQ(packet["pid"], getpid());
}

TEST_F(Audit, Property16QuotasAreToldWithTheirFigures) {
  StopDaemon();
  ASSERT_NO_FATAL_FAILURE(
      Start({LimitsFlag("session_limits { regions: " + std::to_string(kSessionRegionsMax) + " }")}));
  {
    TestSession session(daemon());
    for (uint64_t region = 0; region < kSessionRegionsMax; ++region) {
      session.CreateMr();
    }
    v1::BatchCreateMrRequest batch;
    batch.add_items()->set_pd_id(session.pd_id());
    batch.add_items()->set_pd_id(session.pd_id() + 1);
    ExpectOk(session.Call(&MemoryStub::BatchCreateMr, batch));
    v1::CreateMrRequest request;
    request.set_pd_id(session.pd_id());
    ExpectRefused(session.Call(&MemoryStub::CreateMr, request), ErrorReason::QUOTA_REGIONS);
  }
  StopDaemon();
  const AuditLines lines(path());
  const Line refused = lines.Only({{"what", "MemoryService.CreateMr"}, {"result", "refused"}});
  EXPECT_EQ(refused["reason"], "QUOTA_REGIONS");
  EXPECT_EQ(refused["limit"], kSessionRegionsMax);
  EXPECT_EQ(refused["used"], kSessionRegionsMax);
  EXPECT_EQ(refused["requested"], 1);
  EXPECT_EQ(lines.Only({{"what", "MemoryService.BatchCreateMr"}})["note"], "refused=2 of=2 first=QUOTA_REGIONS");
}

TEST_F(Audit, Property16GrantsAreToldFromTheirMakingToTheirEnd) {
  uint64_t session = 0;
  uint64_t grant_id = 0;
  {
    const v1::CreateGrantResponse grant = MustCreateGrant(daemon(), "pod-7");
    grant_id = grant.grant_id();
    RawClient bearer(daemon().rpc_socket());
    const auto opened = OpenWithGrant(bearer, grant.secret());
    ExpectOk(opened);
    session = opened.response.session_id();
    EXPECT_EQ(opened.response.tenant(), "grant/pod-7");
    RawClient thief(daemon().rpc_socket());
    ExpectRefused(OpenWithGrant(thief, grant.secret() + "0"), ErrorReason::GRANT_REFUSED, "grant");
    ExpectOk(RevokeGrant(daemon(), grant.grant_id()));
    ExpectRefused(RevokeGrant(daemon(), grant.grant_id()), ErrorReason::GRANT_NOT_FOUND, "grant_id");
  }
  StopDaemon();
  const AuditLines lines(path());
  const Line created = lines.Only({{"what", "AdminService.CreateGrant"}});
  EXPECT_EQ(created["object"], "name=pod-7 grant_id=" + std::to_string(grant_id));
  EXPECT_EQ(created["role"], "operator");
  EXPECT_EQ(created["tenant"], "");
  EXPECT_THAT(lines.StoryOf(session), ElementsAre("SessionService.OpenSession", "session.end"));
  for (const Line& line : lines.Where({{"session_id", std::to_string(session)}})) {
    EXPECT_EQ(line["tenant"], "grant/pod-7") << line;
  }
  EXPECT_EQ(lines.Only({{"what", "SessionService.OpenSession"}, {"result", "refused"}})["reason"], "GRANT_REFUSED");
  EXPECT_EQ(lines.Only({{"what", "session.end"}})["note"], "grant_revoked");
  const std::string object = "grant_id=" + std::to_string(grant_id);
  EXPECT_EQ(lines.Only({{"what", "AdminService.RevokeGrant"}, {"result", "allowed"}})["object"], object);
  EXPECT_EQ(lines.Only({{"what", "AdminService.RevokeGrant"}, {"result", "refused"}})["object"], object);
}

TEST_F(Audit, Property16WhatOperatorsDoIsTold) {
  {
    TestSession session(daemon());
    TestSession other(daemon());
    ExpectOk(Evict(daemon(), session.session_id()));
    ExpectOk(Drain(daemon()));
    v1::AllocateMemoryRequest request;
    request.set_size(kPage);
    ExpectRefused(other.Call(&MemoryStub::AllocateMemory, request), ErrorReason::DAEMON_DRAINING);
    ExpectOk(Drain(daemon(), /*resume=*/true));
    RawClient admin(daemon().admin_socket());
    v1::SetLogLevelRequest level;
    level.set_level("debug");
    ExpectOk(admin.Call(&AdminStub::SetLogLevel, level));
    ExpectOk(admin.Call(&AdminStub::DumpState, {}));
    ExpectOk(admin.Call(&AdminStub::ListSessions, {}));
    ExpectRefused(admin.Call(&AdminStub::ReloadPolicy, {}), ErrorReason::POLICY_REFUSED);
  }
  StopDaemon();
  const AuditLines lines(path());
  const Line evicted = lines.Only({{"what", "session.end"}, {"note", "evicted"}});
  EXPECT_EQ(lines.Only({{"what", "AdminService.EvictSession"}})["object"],
            "session_id=" + evicted.value("session_id", ""));
  EXPECT_EQ(lines.Where({{"what", "AdminService.Drain"}}).size(), 2u);
  EXPECT_EQ(lines.Only({{"what", "MemoryService.AllocateMemory"}})["reason"], "DAEMON_DRAINING");
  EXPECT_EQ(lines.Only({{"what", "AdminService.SetLogLevel"}})["object"], "level=debug");
  lines.Only({{"what", "AdminService.DumpState"}, {"result", "allowed"}});
  EXPECT_THAT(lines.Where({{"what", "AdminService.ListSessions"}}), IsEmpty()) << "looking changes nothing";
  EXPECT_EQ(lines.Only({{"what", "AdminService.ReloadPolicy"}})["reason"], "POLICY_REFUSED");
}

TEST_F(Audit, Property16ADeathIsToldWithItsUser) {
  uint64_t pid = 0;
  {
    const auto client = ChildClient::Start(daemon(), WorkloadUid());
    ASSERT_NE(client, nullptr);
    pid = static_cast<uint64_t>(client->process().pid());
    client->MustRun("open");
    client->KillHard();
    EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 0; }));
  }
  StopDaemon();
  const Line end = AuditLines(path()).Only({{"what", "session.end"}});
  EXPECT_EQ(end["note"], "process_exited");
  EXPECT_EQ(end["uid"], WorkloadUid());
  EXPECT_EQ(end["pid"], pid);
}

TEST_F(Audit, Property16ConnectionsThatAreTurnedAwayAreTold) {
  StopDaemon();
  ASSERT_NO_FATAL_FAILURE(Start({"--max_connections_per_uid=" + std::to_string(kConnectionsMax)}));
  {
    std::vector<std::unique_ptr<FdSocket>> sockets;
    for (uint64_t count = 0; count < 2 * kConnectionsMax; ++count) {
      sockets.push_back(std::make_unique<FdSocket>(daemon().fd_socket()));
    }
    EXPECT_TRUE(daemon().process().errors().WaitFor("connection refused", kTimeout));
  }
  StopDaemon();
  const auto refused = AuditLines(path()).Where({{"what", "connection"}, {"result", "refused"}});
  ASSERT_GT(refused.size(), 0u);
  EXPECT_EQ(refused.front()["note"], "connection_limit_uid");
  EXPECT_EQ(refused.front()["pid"], getpid());
  EXPECT_EQ(refused.front()["uid"], geteuid());
}

TEST_F(Audit, Property16AFloodOfTheSameRefusalIsAFewLinesWithItsNumber) {
  {
    RawClient client(daemon().rpc_socket());
    for (uint64_t call = 0; call < kFlood; ++call) {
      client.Call(&SessionStub::GetSession, {});
    }
  }
  StopDaemon();
  const AuditLines lines(path());
  // The time from one line to the next doubles.
  EXPECT_LE(lines.Where({{"what", "SessionService.GetSession"}}).size(), 16u);
  EXPECT_EQ(lines.Decisions({{"what", "SessionService.GetSession"}, {"reason", "SESSION_REQUIRED"}}), kFlood);
}

// Calls of several kinds, refused and allowed, on several threads.
TEST_F(Audit, Property16AFloodWritesNoMoreThanTheRateOfItsOwnerAndNoDecisionIsUncounted) {
  StopDaemon();
  std::filesystem::remove(path());
  ASSERT_NO_FATAL_FAILURE(Start({"--audit_bytes_per_second=" + std::to_string(kLeastRate)}));
  const auto began = std::chrono::steady_clock::now();
  constexpr uint64_t kFlooders = 4;
  constexpr uint64_t kKinds = 4;
  std::vector<std::thread> attackers;
  for (uint64_t attacker = 0; attacker < kFlooders; ++attacker) {
    attackers.emplace_back([this] {
      RawClient client(daemon().rpc_socket());
      v1::OpenSessionRequest bad_grant;
      bad_grant.set_grant("x");
      for (uint64_t round = 0; round < kFlood; ++round) {
        client.Call(&SessionStub::GetSession, {});
        client.Call(&SessionStub::OpenSession, bad_grant);
        client.Call(&SessionStub::OpenSession, {});
        client.Call(&SessionStub::CloseSession, {});
      }
    });
  }
  for (std::thread& attacker : attackers) {
    attacker.join();
  }
  StopDaemon();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
  const AuditLines lines(path());
  // Each of these sessions has a line of its end, too.
  const uint64_t ends = lines.Decisions({{"what", "session.end"}});
  EXPECT_EQ(ends, kFlooders * kFlood);
  EXPECT_EQ(lines.Decisions({}), kFlooders * kKinds * kFlood + ends);
  // Its budget and that of sessions, and the last counts.
  const uint64_t allowed = 2 * kLeastRate * (64 + static_cast<uint64_t>(seconds));
  EXPECT_LE(std::filesystem::file_size(path()), allowed + uint64_t{36} * 1024);
}

TEST_F(Audit, ADaemonThatCannotKeepItDoesNotStart) {
  StopDaemon();
  const std::string nowhere = directory_->path() + "/none/audit.log";
  auto launched = DaemonProcess::Launch({.flags = {"--audit_log=" + nowhere}, .directory = directory_});
  ASSERT_TRUE(launched.ok()) << launched.status();
  const std::optional<ProcessEnd> end = (*launched)->process().WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 1);
  (*launched)->process().errors().WaitForEnd(kTimeout);
  EXPECT_NE((*launched)->log().find(nowhere), std::string::npos) << (*launched)->log();
}

// --- leaks ---

TEST(LeakFinderTest, FindsATokenInEveryForm) {
  LeakFinder finder;
  finder.AddToken("token", 0xa1b2c3d4);
  for (const std::string& text :
       std::vector<std::string>{"token=2712847316 x", "token=0xA1B2C3D4", "\"a1b2c3d4\"", "\xd4\xc3\xb2\xa1"}) {
    EXPECT_THAT(finder.FindIn("before " + text + " after"), ElementsAre("token")) << text;
  }
  EXPECT_THAT(finder.FindIn("12712847316 a1b2c3d4e 0xa1b2c3d5"), IsEmpty()) << "another number";
}

TEST(LeakFinderTest, FindsBytesAndGrantsInEveryForm) {
  LeakFinder finder;
  finder.AddBytes("ticket", "\x01\xfe\x80xyz\"\n");
  for (const std::string& text :
       std::vector<std::string>{"01fe8078797a220a", "01FE8078797A220A", "Af6AeHl6Igo=", "\x01\xfe\x80xyz\"\n"}) {
    EXPECT_THAT(finder.FindIn("before" + text + "after"), ElementsAre("ticket")) << text;
  }
  LeakFinder grants;
  grants.AddGrant("grant", "rnicd-grant-17-0011223344556677");
  EXPECT_FALSE(grants.FindIn("grant=0011223344556677").empty());
  EXPECT_TRUE(grants.FindIn("rnicd-grant-17-").empty());
}

// The secrets of a run with all features: tokens of all kinds, used and unused tickets, grants.
class Secrets {
 public:
  void Add(const v1::Registration& registration) {
    AddToken("local token of a registration", registration.local_token());
    AddToken("remote token of a registration", registration.remote_token());
  }
  void AddToken(const std::string& name, uint32_t token) {
    EXPECT_NE(token, 0u) << name;
    finder_.AddToken(name, token);
  }
  void AddTicket(const std::string& ticket) {
    EXPECT_FALSE(ticket.empty());
    finder_.AddBytes("ticket", ticket);
  }
  void AddGrant(const std::string& secret) {
    EXPECT_GT(secret.size(), 32u);
    finder_.AddGrant("grant", secret);
  }
  const LeakFinder& finder() const { return finder_; }

 private:
  LeakFinder finder_;
};

void UseMemory(DaemonProcess& daemon, Secrets& secrets) {
  TestSession session(daemon, kLabel);
  const v1::AllocateMemoryResponse memory = session.Allocate(4 * kPage);
  secrets.AddTicket(memory.fd_ticket());
  session.Fetch(memory.fd_ticket());
  ExpectFdRefused(FetchFd(daemon.fd_socket(), memory.fd_ticket()), ErrorReason::TICKET_UNKNOWN);
  ExpectOk(session.Seal(memory.memory_id()));
  secrets.AddTicket(session.Import(kPage).fd_ticket());
  for (int region = 0; region < 16; ++region) {
    const uint64_t mr_id = session.CreateMr();
    secrets.Add(session.RegisterWhole(mr_id, memory.memory_id(), 4 * kPage));
    secrets.AddToken("local token", session.LocalToken(mr_id).response.local_token());
    secrets.AddToken("remote token", session.RemoteToken(mr_id).response.remote_token());
    ExpectRefused(session.Register(RegisterRequest(mr_id, {MdlEntry(memory.memory_id(), 0, kPage, kBase)}, kPage)),
                  ErrorReason::REGION_ALREADY_REGISTERED, "mr_id");
  }
  secrets.AddToken("privileged token", PrivilegedToken(session));
}

void UseQueues(DaemonProcess& daemon, Secrets& secrets) {
  TestSession session(daemon, kLabel);
  TestQueue near(session);
  TestQueue far(session);
  ConnectPair(near, far);
  TestMemory memory(session, 2 * kPage);
  const uint64_t region = FastRegion(session, 2);
  const v1::PostResponse posted = near.MustPost(
      {FastRegisterRequest(region, memory.Pages(0, 2), 2 * kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_WRITE)});
  for (const v1::IssuedToken& issued : posted.issued_tokens()) {
    secrets.AddToken("token of a fast registration", issued.remote_token());
  }
  near.NextInitiator();
  near.ExpectPostRefused(InvalidateMrRequest(region + 1), ErrorReason::OBJECT_NOT_FOUND, "invalidate.mr_id");
  WindowToken(session, CreateMw(session));
}

void UseGrants(DaemonProcess& daemon, Secrets& secrets) {
  const v1::CreateGrantResponse grant = MustCreateGrant(daemon, "leak");
  secrets.AddGrant(grant.secret());
  RawClient bearer(daemon.rpc_socket());
  ExpectOk(OpenWithGrant(bearer, grant.secret()));
  ExpectRefused(OpenWithGrant(bearer, grant.secret()), ErrorReason::SESSION_ALREADY_OPEN);
  const std::string wrong = grant.secret().substr(0, grant.secret().size() - 1);
  secrets.AddGrant(wrong);
  RawClient thief(daemon.rpc_socket());
  ExpectRefused(OpenWithGrant(thief, wrong), ErrorReason::GRANT_REFUSED, "grant");
  ExpectOk(RevokeGrant(daemon, grant.grant_id()));
  ExpectRefused(OpenWithGrant(thief, grant.secret()), ErrorReason::GRANT_REFUSED, "grant");
}

TEST_F(Audit, Property16NoLogHoldsATokenATicketOrASecret) {
  Secrets secrets;
  UseMemory(daemon(), secrets);
  UseQueues(daemon(), secrets);
  UseGrants(daemon(), secrets);
  StopDaemon();
  const std::string audit = ReadFile(path());
  EXPECT_GT(secrets.finder().size(), 64u);
  EXPECT_NE(audit.find("REGION_ALREADY_REGISTERED"), std::string::npos) << "the run must have left its lines";
  EXPECT_NE(log_.find("call refused"), std::string::npos) << "the other log must say all it can";
  EXPECT_THAT(secrets.finder().FindIn(audit), IsEmpty());
  EXPECT_THAT(secrets.finder().FindIn(log_), IsEmpty());
  EXPECT_EQ(audit.find(kLabel), std::string::npos) << "a client's words";
}

}  // namespace
}  // namespace rnicd::test
