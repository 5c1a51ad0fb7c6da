// The operator's view and actions: evict, drain, inspect, dump, log level, pods, and who may use them.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/support/admin_client.h"
#include "tests/support/event_reader.h"
#include "tests/support/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/temp_dir.h"
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

TEST_F(Admin, EvictionOfNobodyIsRefused) {
  ExpectRefused(Evict(daemon(), 0), ErrorReason::SESSION_NOT_FOUND, "session_id");
  TestSession session(daemon());
  const uint64_t id = session.session_id();
  ExpectRefused(Evict(daemon(), id + 1), ErrorReason::SESSION_NOT_FOUND, "session_id");
  ExpectOk(Evict(daemon(), id));
  ExpectRefused(Evict(daemon(), id), ErrorReason::SESSION_NOT_FOUND, "session_id");
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

// Every value in the document, as text.
void CollectValues(const nlohmann::json& json, std::vector<std::string>& values) {
  if (json.is_structured()) {
    for (const nlohmann::json& part : json) {
      CollectValues(part, values);
    }
    return;
  }
  values.push_back(json.is_string() ? json.get<std::string>() : json.dump());
}

TEST_F(Admin, DumpIsJsonOfEverythingButTokensAndSecrets) {
  v1::CreateGrantRequest make;
  make.set_name("dumped");
  const auto grant = CreateGrant(daemon(), make);
  ExpectOk(grant);
  TestSession session(daemon(), "dumped");
  const v1::AllocateMemoryResponse memory = session.Allocate(kPage);
  session.Fetch(memory.fd_ticket());
  ExpectOk(session.Seal(memory.memory_id()));
  const uint64_t mr_id = session.CreateMr();
  const v1::Registration registration = session.RegisterWhole(mr_id, memory.memory_id(), kPage, 7);
  const auto dumped = Ask<v1::DumpStateResponse>(&AdminStub::DumpState, v1::DumpStateRequest());
  ExpectOk(dumped);
  const nlohmann::json json = nlohmann::json::parse(dumped.response.json(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << dumped.response.json();
  EXPECT_EQ(json["status"]["sessions"], "1");
  EXPECT_EQ(json["sessions"][0]["session_id"], std::to_string(session.session_id()));
  EXPECT_EQ(json["regions"][0]["mr_id"], std::to_string(mr_id));
  EXPECT_EQ(json["grants"][0]["grant_id"], std::to_string(grant.response.grant_id()));
  EXPECT_GE(json["tenants"].size(), 2u);
  std::vector<std::string> values;
  CollectValues(json, values);
  EXPECT_EQ(std::count(values.begin(), values.end(), std::to_string(registration.local_token())), 0);
  EXPECT_EQ(std::count(values.begin(), values.end(), std::to_string(registration.remote_token())), 0);
  for (const std::string& secret : {grant.response.secret(), memory.fd_ticket()}) {
    EXPECT_EQ(dumped.response.json().find(secret), std::string::npos);
  }
  ExpectOk(RevokeGrant(daemon(), grant.response.grant_id()));
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

// --- pods ---

v1::PodInfo Pod(const std::string& uid, const std::string& name = "pod-7") {
  v1::PodInfo pod;
  pod.set_uid(uid);
  pod.set_namespace_("training");
  pod.set_name(name);
  v1::PodLabel* const label = pod.add_labels();
  label->set_key("example.com/tier");
  label->set_value("gold");
  return pod;
}

constexpr char kPodUid[] = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";
constexpr char kStaticPodUid[] = "0123456789abcdef0123456789abcdef";

TEST_F(Admin, PodsAreKnownUntilOthersAreSaid) {
  v1::SetPodsRequest request;
  *request.add_pods() = Pod(kPodUid);
  *request.add_pods() = Pod(kStaticPodUid, "pod-8");
  ExpectOk(Ask<v1::SetPodsResponse>(&AdminStub::SetPods, request));
  const auto pods = [&] {
    return nlohmann::json::parse(
        Ask<v1::DumpStateResponse>(&AdminStub::DumpState, v1::DumpStateRequest()).response.json())["pods"];
  };
  const nlohmann::json known = pods();
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0]["uid"], kPodUid);
  EXPECT_EQ(known[0]["namespace"], "training");
  EXPECT_EQ(known[0]["labels"][0]["value"], "gold");
  EXPECT_EQ(known[1]["uid"], kStaticPodUid);
  ExpectOk(Ask<v1::SetPodsResponse>(&AdminStub::SetPods, v1::SetPodsRequest()));
  EXPECT_TRUE(pods().empty());
}

TEST_F(Admin, PodsThatCannotBeAreRefusedAndNothingChanges) {
  const auto refused = [&](const std::vector<v1::PodInfo>& pods, const std::string& field) {
    v1::SetPodsRequest request;
    request.mutable_pods()->Assign(pods.begin(), pods.end());
    ExpectRefused(Ask<v1::SetPodsResponse>(&AdminStub::SetPods, request), ErrorReason::FIELD_OUT_OF_RANGE, field);
  };
  for (const std::string& uid : {std::string("pod-7"), std::string("0D9E1B5C-90a4-4a3c-8f0e-6d7d5b3f2c11"),
                                 std::string("0d9e1b5c090a4-4a3c-8f0e-6d7d5b3f2c11"), std::string(31, 'a')}) {
    refused({Pod(kPodUid), Pod(uid, "pod-8")}, "pods[1].uid");
  }
  refused({Pod(kPodUid), Pod(kPodUid, "pod-8")}, "pods[1].uid");
  refused({Pod(kPodUid), Pod(kStaticPodUid)}, "pods[1].name");
  const auto with = [](const auto& change) {
    v1::PodInfo pod = Pod(kPodUid);
    change(pod);
    return pod;
  };
  refused({with([](v1::PodInfo& pod) { pod.set_namespace_(std::string(64, 'n')); })}, "pods[0].namespace");
  refused({with([](v1::PodInfo& pod) { pod.set_name(std::string(254, 'n')); })}, "pods[0].name");
  refused({with([](v1::PodInfo& pod) { pod.set_name("two\nlines"); })}, "pods[0].name");
  refused({with([](v1::PodInfo& pod) { pod.mutable_labels(0)->set_key(""); })}, "pods[0].labels[0].key");
  refused({with([](v1::PodInfo& pod) { pod.mutable_labels(0)->set_key(std::string(318, 'k')); })},
          "pods[0].labels[0].key");
  refused({with([](v1::PodInfo& pod) { pod.mutable_labels(0)->set_value(std::string(64, 'v')); })},
          "pods[0].labels[0].value");
  refused({with([](v1::PodInfo& pod) { *pod.add_labels() = pod.labels(0); })}, "pods[0].labels[1].key");
  refused({with([](v1::PodInfo& pod) {
            for (int index = 1; index <= 64; ++index) {
              pod.add_labels()->set_key("key" + std::to_string(index));
            }
          })},
          "pods[0].labels");
  refused(std::vector<v1::PodInfo>(10'001, v1::PodInfo()), "pods");
  const auto dump = Ask<v1::DumpStateResponse>(&AdminStub::DumpState, v1::DumpStateRequest());
  EXPECT_TRUE(nlohmann::json::parse(dump.response.json())["pods"].empty());
}

// --- who may ---

// The outcome of each operator's call for this client, by method name of AdminService.
std::map<std::string, CallOutcome> EveryAdminCall(RawClient& client) {
  std::map<std::string, CallOutcome> outcomes;
  outcomes["GetStatus"] = client.Call(&AdminStub::GetStatus, {});
  outcomes["ListSessions"] = client.Call(&AdminStub::ListSessions, {});
  outcomes["ListRegions"] = client.Call(&AdminStub::ListRegions, {});
  outcomes["ListTenants"] = client.Call(&AdminStub::ListTenants, {});
  outcomes["InspectSession"] = client.Call(&AdminStub::InspectSession, {});
  outcomes["DumpState"] = client.Call(&AdminStub::DumpState, {});
  outcomes["EvictSession"] = client.Call(&AdminStub::EvictSession, {});
  v1::DrainRequest resume;
  resume.set_resume(true);
  outcomes["Drain"] = client.Call(&AdminStub::Drain, resume);
  outcomes["SetLogLevel"] = client.Call(&AdminStub::SetLogLevel, {});
  outcomes["ReloadPolicy"] = client.Call(&AdminStub::ReloadPolicy, {});
  outcomes["CreateGrant"] = client.Call(&AdminStub::CreateGrant, {});
  outcomes["RevokeGrant"] = client.Call(&AdminStub::RevokeGrant, {});
  outcomes["BindGrant"] = client.Call(&AdminStub::BindGrant, {});
  outcomes["ListGrants"] = client.Call(&AdminStub::ListGrants, {});
  outcomes["SetPods"] = client.Call(&AdminStub::SetPods, {});
  return outcomes;
}

bool NotPermitted(const CallOutcome& outcome) {
  return outcome.has_detail && outcome.detail.reason() == v1::ERROR_REASON_METHOD_NOT_PERMITTED;
}

TEST_F(Admin, WorkloadsMayDoNoneOfIt) {
  RawClient workload(daemon().rpc_socket());
  const auto outcomes = EveryAdminCall(workload);
  const auto* const service = v1::GetStatusRequest::descriptor()->file()->FindServiceByName("AdminService");
  ASSERT_EQ(static_cast<int>(outcomes.size()), service->method_count());
  for (int index = 0; index < service->method_count(); ++index) {
    SCOPED_TRACE(service->method(index)->name());
    ExpectRefused(outcomes.at(service->method(index)->name()), ErrorReason::METHOD_NOT_PERMITTED);
  }
}

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
  const std::vector<std::string> for_operators = {"EvictSession", "Drain", "SetLogLevel", "ReloadPolicy"};
  for (const auto& [name, outcome] : EveryAdminCall(plugin)) {
    SCOPED_TRACE(name);
    const bool forbidden = std::find(for_operators.begin(), for_operators.end(), name) != for_operators.end();
    EXPECT_EQ(NotPermitted(outcome), forbidden) << outcome.message;
  }
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
