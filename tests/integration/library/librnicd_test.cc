// The C++ library's sessions: who the workload is, what it sees, and what happens to it when the daemon goes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/memory_window.h"
#include "client/cpp/transport_failure.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

TEST_F(Librnicd, ConnectOpensASessionAndTheLastOwnerClosesIt) {
  {
    std::optional<Client> client = MustConnect();
    const std::vector<v1::SessionInfo> sessions = AdminSessions(daemon());
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions.front().session_id(), client->session_id().value);
    const Memory memory = MustAllocate(*client, kClientPage);
    client.reset();
    EXPECT_EQ(AdminStatus(daemon()).sessions(), 1u);
  }
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 0u);
}

TEST_F(Librnicd, SessionHasItsIdItsLabelAndItsLimits) {
  const Client client = MustConnect({.label = "mine"});
  const SessionUse session = Must(client.GetSession());
  EXPECT_EQ(session.id, client.session_id());
  EXPECT_EQ(session.label, "mine");
  const auto adapters = std::find_if(session.resources.begin(), session.resources.end(),
                                     [](const ResourceUse& use) { return use.name == "adapters"; });
  ASSERT_NE(adapters, session.resources.end());
  EXPECT_EQ(adapters->limit, 64u);
}

TEST_F(Librnicd, GrantComesFromTheOptionsOrTheEnvironment) {
  v1::CreateGrantRequest request;
  request.set_name("one");
  const auto one = CreateGrant(daemon(), request);
  request.set_name("two");
  const auto two = CreateGrant(daemon(), request);
  unsetenv("RNICD_GRANT");
  const std::string own = TestSession(daemon()).Call(&SessionStub::GetSession, {}).response.tenant();
  EXPECT_EQ(MustConnect().tenant(), own);
  EXPECT_EQ(MustConnect({.grant = one.response.secret()}).tenant(), "grant/one");
  setenv("RNICD_GRANT", two.response.secret().c_str(), 1);
  EXPECT_EQ(MustConnect().tenant(), "grant/two");
  EXPECT_EQ(MustConnect({.grant = one.response.secret()}).tenant(), "grant/one");
  setenv("RNICD_GRANT", "wrong", 1);
  EXPECT_TRUE(FailedWith(Connect().status(), ErrorReason::GRANT_REFUSED));
  unsetenv("RNICD_GRANT");
  ExpectOk(RevokeGrant(daemon(), one.response.grant_id()));
  ExpectOk(RevokeGrant(daemon(), two.response.grant_id()));
}

TEST_F(Librnicd, AdapterIsListedAndOpenedOnceWhenItIsNeeded) {
  const Client client = MustConnect({.adapter_name = AdapterUnderTest()});
  const std::vector<AdapterSummary> adapters = Must(client.ListAdapters());
  const auto adapter = std::find_if(adapters.begin(), adapters.end(),
                                    [](const AdapterSummary& one) { return one.name == AdapterUnderTest(); });
  ASSERT_NE(adapter, adapters.end());
  EXPECT_EQ(adapter->provider, ProviderUnderTest());
  EXPECT_EQ(UsedBy(client, "adapters"), 0u);
  const NdkAdapterInfo info = Must(client.QueryAdapterInfo());
  EXPECT_EQ(info.version, (NdkVersion{.major = 1, .minor = 2}));
  EXPECT_EQ(info.max_registration_size, adapter->info.max_registration_size);
  EXPECT_TRUE(client.QueryAdapterInfo().ok());
  EXPECT_EQ(UsedBy(client, "adapters"), 1u);
}

TEST_F(Librnicd, MovedFromClientRefusesEveryCall) {
  Client client = MustConnect();
  const Client taken = std::move(client);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  EXPECT_EQ(client.session_id(), SessionId{});
  EXPECT_EQ(client.tenant(), "");
  const std::vector<absl::Status> outcomes = {
      client.ListAdapters().status(),
      client.QueryAdapterInfo().status(),
      client.GetSession().status(),
      client.GetPrivilegedToken().status(),
      client.Close().status(),
      Memory::Allocate(client, {.size = kMiB}).status(),
      Memory::Import(client, 0, kMiB).status(),
      MemoryRegion::RegisterChain(client, {}, 1, 0).status(),
      FastRegion::Create(client, {.max_pages = 1}).status(),
      MemoryWindow::Create(client).status(),
      LogicalMapping::BuildChain(client, {}, 1).status(),
      CompletionQueue::Create(client, 16).status(),
  };
  for (size_t index = 0; index < outcomes.size(); ++index) {
    EXPECT_TRUE(FailedWith(outcomes[index], ErrorReason::SESSION_REQUIRED)) << index << ": " << outcomes[index];
  }
  EXPECT_TRUE(taken.GetSession().ok());
}

TEST_F(Librnicd, CloseReportsWhatWasHeldAndDestructorsComeAfterIt) {
  Client client = MustConnect();
  const Memory memory = MustAllocate(client, 4 * kClientPage);
  const auto region = MemoryRegion::Register(memory, 0);
  ASSERT_TRUE(region.ok()) << region.status();
  const auto reclaimed = client.Close();
  ASSERT_TRUE(reclaimed.ok()) << reclaimed.status();
  EXPECT_EQ(reclaimed->regions, 1u);
  EXPECT_EQ(reclaimed->pinned_bytes, 4 * kClientPage);
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 0u);
  EXPECT_FALSE(client.GetSession().ok());
  // The mapping belongs to this process and stays usable.
  memory.bytes().front() = std::byte{1};
}

TEST_F(Librnicd, OwnCloseIsNotReportedAsAnEnd) {
  std::atomic<int> reports = 0;
  const ClientOptions options{.on_session_ended = [&reports](const absl::Status&) { ++reports; }};
  ASSERT_TRUE(MustConnect(options).Close().ok());
  MustConnect(options);
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 0u);
  EXPECT_EQ(reports, 0);
}

class LibrnicdOneSession : public Librnicd {
 protected:
  LibrnicdOneSession() : Librnicd({LimitsFlag("limits { sessions: 1 }")}) {}
};

TEST_F(LibrnicdOneSession, RefusedSessionIsAnErrorWithItsReason) {
  const Client client = MustConnect();
  const absl::Status refused = Connect().status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::QUOTA_SESSIONS)) << refused;
  EXPECT_EQ(NtStatusOf(refused), NtStatus::kInsufficientResources);
}

constexpr char kAdapterNotFound[] = "code=\"NOT_FOUND\",method=\"AdapterService.OpenAdapter\"";
constexpr char kMemoryCalls[] = "code=\"OK\",method=\"MemoryService.";

// With a page that shows which calls were made.
class LibrnicdCounted : public Librnicd {
 protected:
  LibrnicdCounted() : Librnicd({kMetricsOnFreePort}), address_(AdminStatus(daemon()).metrics_address()) {}

  // How often it was counted so far, summed over all samples whose labels begin so.
  double Calls(const std::string& labels) {
    return MetricsPage(HttpGet(address_, "/metrics").body).Sum("rnicd_rpcs_total{" + labels);
  }

 private:
  const std::string address_;
};

TEST_F(LibrnicdCounted, UnknownAdapterIsRefusedAndTriedAgain) {
  const Client client = MustConnect({.adapter_name = "absent"});
  const double before = Calls(kAdapterNotFound);
  EXPECT_TRUE(FailedWith(client.QueryAdapterInfo().status(), ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_TRUE(FailedWith(client.QueryAdapterInfo().status(), ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_EQ(Calls(kAdapterNotFound), before + 2);
}

TEST_F(LibrnicdCounted, PartOutsideTheMemoryNeedsNoCall) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  const double before = Calls(kMemoryCalls);
  const std::vector<std::byte> other(10);
  EXPECT_TRUE(FailedWith(MemoryRegion::Register(memory, other, 0).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  EXPECT_EQ(Calls(kMemoryCalls), before);
}

TEST_F(LibrnicdCounted, BatchRegistersAndClosesInThreeCalls) {
  constexpr size_t kParts = 100;
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kParts * kClientPage);
  // The domain's own call comes with the first region.
  ASSERT_TRUE(MemoryRegion::Register(memory, 0).ok());
  const double before = Calls(kMemoryCalls);
  const std::vector<std::span<const std::byte>> parts(kParts, memory.bytes().first(kClientPage));
  std::vector<MemoryRegion> regions;
  for (auto& outcome : Must(MemoryRegion::RegisterBatch(memory, parts, 0))) {
    regions.push_back(Must(std::move(outcome)));
  }
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), kParts);
  EXPECT_TRUE(MemoryRegion::CloseBatch(std::move(regions)).ok());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  EXPECT_EQ(Calls(kMemoryCalls), before + 3);
}

TEST_F(LibrnicdCounted, ProvisionTakesTwoCallsFromNothingToTokens) {
  const std::vector<RegionRange> ranges(100, {.length = kClientPage});
  const Client client = MustConnect();
  // The domain's own call comes with the first region.
  const Provisioned first = Must(MemoryRegion::Provision(client, {.size = kClientPage}, ranges));
  const double before = Calls(kMemoryCalls);
  const Provisioned second = Must(MemoryRegion::Provision(client, {.size = kClientPage}, ranges));
  EXPECT_EQ(Calls(kMemoryCalls), before + 2);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 200u);
}

// --- when the daemon ends it ---

// Registrations of a page pend, so that one that completes shows that the event stream stands.
void AwaitEvents(const Client& client) {
  const Memory memory = Must(Memory::Allocate(client, {.size = kClientPage}));
  std::promise<absl::Status> registered;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), 0, [&](const absl::StatusOr<MemoryRegion>& region) {
    registered.set_value(region.status());
  });
  const absl::Status status = registered.get_future().get();
  EXPECT_TRUE(status.ok()) << status;
}

// Where the end of a session is reported, and how it is waited for.
class SessionEnd {
 public:
  ClientOptions Options() {
    return {.on_session_ended = [this](const absl::Status& why) { ended_.set_value(why); }};
  }
  absl::Status Wait() {
    auto why = ended_.get_future();
    return why.wait_for(kTimeout) == std::future_status::ready ? why.get() : absl::UnknownError("not reported");
  }

 private:
  std::promise<absl::Status> ended_;
};

class LibrnicdEvicted : public Librnicd {
 protected:
  LibrnicdEvicted() : Librnicd({"--pending_threshold_bytes=4096"}) {}
};

TEST_F(LibrnicdEvicted, EndOfSessionIsReportedWithItsCauseAndWakesWaiters) {
  SessionEnd end;
  const Client client = MustConnect(end.Options());
  CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
  AwaitEvents(client);
  auto waited = std::async(std::launch::async, [&] { return queue.WaitForNotification(kTimeout).status(); });
  ExpectOk(Evict(daemon(), client.session_id().value));
  for (const absl::Status& why : {end.Wait(), waited.get(), queue.WaitForNotification(kTimeout).status()}) {
    EXPECT_TRUE(FailedWith(why, ErrorReason::SESSION_ENDING)) << why;
    EXPECT_EQ(ErrorInfoOf(why).field, "evicted");
  }
}

std::unique_ptr<DaemonProcess> MustStart(const std::vector<std::string>& flags) {
  return Must(DaemonProcess::Start({.flags = flags}));
}

TEST(LibrnicdWithoutDaemon, ClientLearnsThatTheDaemonIsGone) {
  const auto daemon = MustStart({});
  SessionEnd end;
  ClientOptions options = end.Options();
  options.socket_dir = daemon->socket_dir();
  const auto client = std::make_unique<Client>(Must(Client::Connect(options)));
  {
    const Memory memory = Must(Memory::Allocate(*client, {.size = kMiB}));
    const auto region = MemoryRegion::Register(memory, 0);
    ASSERT_TRUE(region.ok()) << region.status();
    daemon->KillHard();
    const absl::Status why = end.Wait();
    EXPECT_TRUE(IsTransportFailure(why)) << why;
    memory.bytes().front() = std::byte{1};
    EXPECT_TRUE(IsTransportFailure(client->GetSession().status()));
  }
}

TEST(LibrnicdWithoutDaemon, LostDaemonFailsWhatPends) {
  const auto daemon = MustStart({"--pending_threshold_bytes=4096", HoldableRegistrationsFlag()});
  const Client client = Must(Client::Connect({.socket_dir = daemon->socket_dir()}));
  const Memory memory = Must(Memory::Allocate(client, {.size = kClientPage}));
  std::promise<absl::Status> registered;
  const HeldRegistrations held;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), 0, [&](const absl::StatusOr<MemoryRegion>& region) {
    registered.set_value(region.status());
  });
  daemon->KillHard();
  auto outcome = registered.get_future();
  ASSERT_EQ(outcome.wait_for(kTimeout), std::future_status::ready);
  EXPECT_TRUE(IsTransportFailure(outcome.get()));
}

TEST(LibrnicdWithoutDaemon, ClientIsToldThatTheDaemonStops) {
  const auto daemon = MustStart({"--pending_threshold_bytes=4096"});
  SessionEnd end;
  ClientOptions options = end.Options();
  options.socket_dir = daemon->socket_dir();
  const Client client = Must(Client::Connect(options));
  AwaitEvents(client);
  const absl::Status stopped = daemon->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  const absl::Status why = end.Wait();
  EXPECT_TRUE(FailedWith(why, ErrorReason::SESSION_ENDING)) << why;
  EXPECT_EQ(ErrorInfoOf(why).field, "daemon_stopping");
}

}  // namespace
}  // namespace rnicd::test
