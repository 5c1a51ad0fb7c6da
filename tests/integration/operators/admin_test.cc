// The operator's view and actions: evict, drain, inspect, log level, policy, and who may use them.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_memory.h"
#include "tests/support/test_session.h"
#include "tests/support/work_requests.h"

namespace rnicd::test {
namespace {

class Admin : public DaemonTest {
 protected:
  using DaemonTest::DaemonTest;

  template <typename Response, typename Request>
  CallResult<Response> Ask(const Rpc<Request, Response>* method, const Request& request) {
    return RawClient(daemon().admin_socket()).Call(method, request);
  }
};

// --- eviction ---

// Creates and closes registered regions until a call is refused; returns the refusal.
CallOutcome WorkUntilRefused(TestSession& session, uint64_t pd_id, uint64_t memory, std::atomic<int>& rounds) {
  v1::CreateMrRequest create;
  create.set_pd_id(pd_id);
  for (;;) {
    auto region = session.Call(&MemoryStub::CreateMr, create);
    if (!region.ok()) {
      return region;
    }
    const uint64_t mr_id = region.response.mr_id();
    auto registered = session.Register(RegisterRequest(mr_id, {MdlEntry(memory, 0, kPage, kBase)}, kPage));
    if (!registered.ok()) {
      return registered;
    }
    auto closed = session.CloseMr(mr_id);
    if (!closed.ok()) {
      return closed;
    }
    ++rounds;
  }
}

TEST_F(Admin, EvictedSessionIsTakenBackWhateverItIsDoing) {
  TestSession session(daemon(), "victim");
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(16 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 16 * kPage);
  const uint64_t pd_id = session.pd_id();
  constexpr int kClients = 4;
  std::atomic<int> rounds = 0;
  std::vector<CallOutcome> refusals(kClients);
  std::vector<std::thread> clients;
  for (CallOutcome& refusal : refusals) {
    clients.emplace_back([&] { refusal = WorkUntilRefused(session, pd_id, memory, rounds); });
  }
  EXPECT_TRUE(Eventually([&] { return rounds > 2 * kClients; }));
  const auto evicted = Evict(daemon(), session.session_id());
  ExpectOk(evicted);
  EXPECT_GE(evicted.response.reclaimed_regions(), 1u);
  EXPECT_EQ(evicted.response.reclaimed_pinned_bytes(), 16 * kPage);
  EXPECT_EQ(evicted.response.reclaimed_memory_bytes(), 16 * kPage);
  // The session has ended when the response arrives, not some time later.
  EXPECT_TRUE(AdminSessions(daemon()).empty());
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 0u);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  for (std::thread& client : clients) {
    client.join();
  }
  for (const CallOutcome& refusal : refusals) {
    const bool was_ending = refusal.detail.reason() == v1::ERROR_REASON_SESSION_ENDING;
    ExpectRefused(refusal, was_ending ? ErrorReason::SESSION_ENDING : ErrorReason::SESSION_REQUIRED);
  }
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back().session_ending().cause(), "evicted");
  // The connection stays open, and may carry another session.
  ExpectOk(session.Call(&SessionStub::OpenSession, {}));
}

TEST_F(Admin, Property07_TokensDieWithTheEvictedSession) {
  TestSession victim(daemon(), "victim");
  TestSession peer(daemon(), "peer");
  const TestMemory memory(victim, kPage);
  const v1::Registration registration =
      victim.RegisterWhole(victim.CreateMr(), memory.id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_WRITE);
  TestQueue victims(victim);
  TestQueue peers(peer);
  ConnectPair(victims, peers);
  const auto write = [&](const std::string& text) {
    return peers.Run(InlineWriteRequest(text, registration.base_virtual_address(), registration.remote_token()));
  };
  EXPECT_EQ(write("before").result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(memory.Text(0, 6), "before");
  ExpectOk(Evict(daemon(), victim.session_id()));
  EXPECT_NE(write("after!").result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(memory.Text(0, 6), "before");
}

// --- draining ---

// Ends the draining of a shared daemon, even if the test fails.
class Resumption {
 public:
  explicit Resumption(const DaemonProcess& daemon) : daemon_(daemon) {}
  ~Resumption() { EXPECT_FALSE(Drain(daemon_, true).response.draining()); }
  Resumption(const Resumption&) = delete;
  Resumption& operator=(const Resumption&) = delete;

 private:
  const DaemonProcess& daemon_;
};

TEST_F(Admin, DrainingTakesNothingOnAndLetsEverythingGo) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const uint64_t registered = session.CreateMr();
  session.RegisterWhole(registered, memory, 2 * kPage);
  const uint64_t fresh = session.CreateMr();
  {
    const Resumption resumption(daemon());
    const auto drained = Drain(daemon());
    ExpectOk(drained);
    EXPECT_TRUE(drained.response.draining());
    EXPECT_EQ(drained.response.sessions(), 1u);
    EXPECT_EQ(drained.response.regions(), 2u);
    EXPECT_EQ(drained.response.pinned_bytes(), 2 * kPage);
    EXPECT_TRUE(AdminStatus(daemon()).draining());

    v1::AllocateMemoryRequest allocate;
    allocate.set_size(kPage);
    ExpectRefused(session.Call(&MemoryStub::AllocateMemory, allocate), ErrorReason::DAEMON_DRAINING);
    v1::ImportMemoryRequest import;
    import.set_size(kPage);
    ExpectRefused(session.Call(&MemoryStub::ImportMemory, import), ErrorReason::DAEMON_DRAINING);
    const v1::RegisterMrRequest request = RegisterRequest(fresh, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
    ExpectRefused(session.Register(request), ErrorReason::DAEMON_DRAINING);
    v1::BuildLamRequest build;
    build.set_adapter_id(session.adapter_id());
    *build.add_mdl_chain() = MdlEntry(memory, 0, kPage, kBase);
    build.set_length(kPage);
    ExpectRefused(session.Call(&MemoryStub::BuildLam, build), ErrorReason::DAEMON_DRAINING);
    RawClient other(daemon().rpc_socket());
    ExpectRefused(other.Call(&SessionStub::OpenSession, {}), ErrorReason::DAEMON_DRAINING);

    ExpectOk(session.RemoteToken(registered));
    ExpectOk(session.Deregister(registered));
    ExpectOk(session.CloseMr(registered));
    EXPECT_EQ(Drain(daemon()).response.pinned_bytes(), 0u);
    EXPECT_EQ(Drain(daemon()).response.regions(), 1u);
  }
  EXPECT_FALSE(AdminStatus(daemon()).draining());
  session.RegisterWhole(fresh, memory, 2 * kPage);
  RawClient other(daemon().rpc_socket());
  ExpectOk(other.Call(&SessionStub::OpenSession, {}));
}

TEST(AdminStop, DrainedDaemonStopsInOrder) {
  auto daemon = DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  TestSession session(**daemon);
  EventReader events(session);
  ExpectOk(Drain(**daemon));
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back().session_ending().cause(), "daemon_stopping");
}

// --- what is seen ---

TEST_F(Admin, SessionsAndTenantsAreSeenWithWhatTheyHold) {
  TestSession session(daemon(), "seen");
  const uint64_t memory = session.SealedMemory(4 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 4 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 4 * kPage);
  const auto inspected = Ask<v1::InspectSessionResponse>(&AdminStub::InspectSession, [&] {
    v1::InspectSessionRequest request;
    request.set_session_id(session.session_id());
    return request;
  }());
  ExpectOk(inspected);
  const v1::SessionInfo& info = inspected.response.session();
  EXPECT_EQ(info.session_id(), session.session_id());
  EXPECT_EQ(info.label(), "seen");
  EXPECT_EQ(info.pid(), getpid());
  EXPECT_EQ(info.uid(), geteuid());
  EXPECT_FALSE(info.ending());
  ASSERT_EQ(inspected.response.regions_size(), 2);
  EXPECT_EQ(inspected.response.regions(0).state(), "registered");
  EXPECT_LT(inspected.response.regions(0).mr_id(), inspected.response.regions(1).mr_id());

  const std::optional<v1::TenantInfo> tenant = AdminTenant(daemon(), info.tenant());
  ASSERT_TRUE(tenant.has_value()) << info.tenant();
  EXPECT_EQ(tenant->sessions(), 1u);
  EXPECT_EQ(tenant->grant_id(), 0u);
  for (const v1::ResourceUse& use : tenant->resources()) {
    if (use.name() == "pinned_bytes") {
      EXPECT_EQ(use.used(), 4 * kPage);
    }
    if (use.name() == "registered_bytes") {
      EXPECT_EQ(use.used(), 8 * kPage);
    }
  }
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 8u);
  EXPECT_GE(AdminStatus(daemon()).tenants(), 1u);
  ExpectRefused(Ask<v1::InspectSessionResponse>(&AdminStub::InspectSession, v1::InspectSessionRequest()),
                ErrorReason::SESSION_NOT_FOUND, "session_id");
}

// --- log level ---

// True if the log reports that the session was opened.
bool SaysOpened(const std::string& log, uint64_t session_id) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("session opened") != std::string::npos &&
        line.find(std::to_string(session_id)) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST_F(Admin, LogLevelIsChangedAndTheOldOneTold) {
  const auto set = [&](const std::string& level) {
    v1::SetLogLevelRequest request;
    request.set_level(level);
    return Ask<v1::SetLogLevelResponse>(&AdminStub::SetLogLevel, request);
  };
  const auto before = set("error");
  ExpectOk(before);
  const TestSession silent(daemon());
  const auto again = set("info");
  ExpectOk(again);
  EXPECT_EQ(again.response.previous(), "error");
  const TestSession told(daemon());
  EXPECT_TRUE(Eventually([&] { return SaysOpened(daemon().log(), told.session_id()); }));
  EXPECT_FALSE(SaysOpened(daemon().log(), silent.session_id()));
  for (const char* wrong : {"", "loud", "INFO"}) {
    ExpectRefused(set(wrong), ErrorReason::FIELD_OUT_OF_RANGE, "level");
  }
  EXPECT_EQ(set(before.response.previous()).response.previous(), "info");
}

// --- who may ---

// A policy file that every test may rewrite, for daemons started with its path.
class PolicyFile {
 public:
  explicit PolicyFile(const std::string& text) { Write(text); }
  void Write(const std::string& text) const {
    std::ofstream(path(), std::ios::trunc) << text;
    EXPECT_EQ(chmod(path().c_str(), 0644), 0);
  }
  std::string path() const { return directory_.path() + "/policy"; }

 private:
  const TempDir directory_;
};

std::string PolicyWithRole(const std::string& role) {
  return "tenant { name: \"all\" sharing: SHARING_EACH_UID }\ndefault_tenant: \"all\"\n"
         "role { match { uid: " +
         std::to_string(geteuid()) + " } role: " + role + " }\n";
}

TEST(AdminRoles, DevicePluginSeesAllAndHandsOutGrantsButDoesNotRuleTheDaemon) {
  const PolicyFile policy(PolicyWithRole("CALLER_ROLE_DEVICE_PLUGIN"));
  auto daemon = DaemonProcess::Start({.flags = {"--policy_file=" + policy.path()}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  RawClient plugin((*daemon)->admin_socket());
  ExpectOk(plugin.Call(&AdminStub::DumpState, {}));
  v1::CreateGrantRequest grant;
  grant.set_name("of-the-plugin");
  ExpectOk(plugin.Call(&AdminStub::CreateGrant, grant));
  ExpectRefused(plugin.Call(&AdminStub::EvictSession, {}), ErrorReason::METHOD_NOT_PERMITTED);
  ExpectRefused(plugin.Call(&AdminStub::Drain, {}), ErrorReason::METHOD_NOT_PERMITTED);
  ExpectRefused(plugin.Call(&AdminStub::SetLogLevel, {}), ErrorReason::METHOD_NOT_PERMITTED);
  ExpectRefused(plugin.Call(&AdminStub::ReloadPolicy, {}), ErrorReason::METHOD_NOT_PERMITTED);
  EXPECT_TRUE((*daemon)->Stop().ok());
}

TEST(AdminPolicy, RefusedFileLeavesThePolicyInForce) {
  const PolicyFile policy(PolicyWithRole("CALLER_ROLE_OPERATOR"));
  auto daemon = DaemonProcess::Start({.flags = {"--policy_file=" + policy.path()}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  EXPECT_EQ(AdminStatus(**daemon).policy_file(), policy.path());
  const auto reload = [&] { return RawClient((*daemon)->admin_socket()).Call(&AdminStub::ReloadPolicy, {}); };
  const auto tenant = [&] {
    RawClient client((*daemon)->rpc_socket());
    return client.Call(&SessionStub::OpenSession, {}).response.tenant();
  };
  const std::string each_uid = "all/uid=" + std::to_string(geteuid());
  EXPECT_EQ(tenant(), each_uid);
  policy.Write("tenant { name: \"all\" }\ndefault_tenant: \"all\"\nno_such_field: 1\n");
  const auto refused = reload();
  ExpectRefused(refused, ErrorReason::POLICY_REFUSED);
  EXPECT_NE(refused.detail.message().find(":3:"), std::string::npos) << refused.detail.message();
  EXPECT_EQ(tenant(), each_uid);
  policy.Write("tenant { name: \"all\" }\ndefault_tenant: \"all\"\n");
  ExpectOk(reload());
  EXPECT_EQ(tenant(), "all");
  EXPECT_TRUE((*daemon)->Stop().ok());
}

TEST_F(Admin, WithoutPolicyFileThereIsNoneToRead) {
  EXPECT_EQ(AdminStatus(daemon()).policy_file(), "");
  ExpectRefused(Ask<v1::ReloadPolicyResponse>(&AdminStub::ReloadPolicy, v1::ReloadPolicyRequest()),
                ErrorReason::POLICY_REFUSED);
}

}  // namespace
}  // namespace rnicd::test
