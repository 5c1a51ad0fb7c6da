// The metrics page: all metrics exist, are correct after known work, and return to 0 afterwards.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

// Path of promtool as installed by scripts/setup, or from PATH; empty if there is none.
std::string FindPromtool() {
  std::string folders = std::string(RNICD_SOURCE_DIR) + "/.cache/tools";
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    folders += ":" + std::string(path);
  }
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string candidate = folders.substr(begin, end - begin) + "/promtool";
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    begin = end + 1;
  }
  return "";
}

class MetricsPages : public DaemonTest {
 protected:
  explicit MetricsPages(const std::vector<std::string>& flags =
                            {kMetricsOnFreePort, LimitsFlag("session_limits { pinned_bytes: 1048576 }")})
      : DaemonTest(flags), address_(AdminStatus(daemon()).metrics_address()) {}

  MetricsPage Fetch() {
    const HttpAnswer answer = HttpGet(address_, "/metrics");
    EXPECT_EQ(answer.status, 200);
    return MetricsPage(answer.body);
  }

  const std::string address_;
};

TEST_F(MetricsPages, EveryPromisedMetricIsThereFromTheStart) {
  const MetricsPage page = Fetch();
  EXPECT_EQ(page.faults(), "");
  for (const char* sample : {"rnicd_connections",
                             "rnicd_generations",
                             "rnicd_device_regions",
                             "rnicd_registrations_total{tenant=\"other\",result=\"ok\"}",
                             "rnicd_registrations_total{tenant=\"other\",result=\"error\"}",
                             "rnicd_registration_failures_total{reason=\"quota_pinned_bytes\"}",
                             "rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"}",
                             "rnicd_registration_duration_seconds_sum{size_class=\"above_256MiB\"}",
                             "rnicd_registration_duration_seconds_bucket{size_class=\"up_to_1MiB\",le=\"+Inf\"}",
                             "rnicd_deregistrations_total{tenant=\"other\",result=\"ok\"}",
                             "rnicd_fast_registrations_total{engine=\"none\",result=\"error\"}",
                             "rnicd_tokens_issued_total{kind=\"local\"}",
                             "rnicd_tokens_issued_total{kind=\"remote\"}",
                             "rnicd_tokens_revoked_total{cause=\"deregister\"}",
                             "rnicd_tokens_revoked_total{cause=\"process_exited\"}",
                             "rnicd_reclaimed_bytes_total{cause=\"closed\"}",
                             "rnicd_reclaimed_bytes_total{cause=\"process_exited\"}",
                             "rnicd_reclaimed_regions_total{cause=\"closed\"}",
                             "rnicd_sessions_opened_total",
                             "rnicd_sessions_ended_total{cause=\"closed\"}",
                             "rnicd_completions_total{operation=\"read\",result=\"success\"}",
                             "rnicd_tenants",
                             "rnicd_draining",
                             "rnicd_audit_lines_lost_total",
                             "rnicd_audit_lines_merged_total",
                             "rnicd_audit_lines_left_out_total",
                             "rnicd_log_lines_dropped_total",
                             "process_open_fds"}) {
    EXPECT_TRUE(page.Has(sample)) << sample;
  }
  EXPECT_EQ(page.Value("rnicd_build_info{version=\"" + AdminStatus(daemon()).version() + "\"}"), 1);
  EXPECT_GT(page.Sum("rnicd_rpcs_total{"), 0);
  EXPECT_GT(page.Sum("rnicd_rpc_duration_seconds_count{"), 0);
}

TEST_F(MetricsPages, KnownWorkIsCountedExactly) {
  // The clients of these tests are one tenant.
  const auto of_tenant = [](const MetricsPage& page, const std::string& metric, const std::string& result) {
    const std::string sample =
        metric + "{tenant=\"uid/uid=" + std::to_string(getuid()) + "\",result=\"" + result + "\"}";
    return page.Has(sample) ? page.Value(sample) : 0;
  };
  const MetricsPage before = Fetch();
  {
    TestSession session(daemon());
    const uint64_t memory = session.SealedMemory(16 * kPage);
    const uint64_t first = session.CreateMr();
    const uint64_t second = session.CreateMr();
    session.RegisterWhole(first, memory, 16 * kPage);
    session.RegisterWhole(second, memory, 2 * kPage);
    ExpectRefused(session.Register(RegisterRequest(session.CreateMr(), {}, 1)), ErrorReason::MDL_CHAIN_EMPTY,
                  "mdl_chain");
    ExpectOk(session.Deregister(second));
    ExpectRefused(session.Deregister(second), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
    EXPECT_TRUE(Eventually([&] { return Fetch().Value("rnicd_connections") == 1; })) << "those before it have ended";
    const MetricsPage during = Fetch();
    EXPECT_EQ(during.Total("rnicd_sessions"), 1);
    EXPECT_EQ(during.Total("rnicd_memory_objects"), 1);
    EXPECT_EQ(during.Total("rnicd_memory_bytes"), 16 * kPage);
    EXPECT_EQ(during.Total("rnicd_memory_regions"), 3);
    EXPECT_EQ(during.Total("rnicd_registered_pages"), 16);
    EXPECT_EQ(during.Total("rnicd_registered_bytes"), 16 * kPage);
    const auto grown = [&](const std::string& sample) { return during.Value(sample) - before.Value(sample); };
    EXPECT_EQ(
        of_tenant(during, "rnicd_registrations_total", "ok") - of_tenant(before, "rnicd_registrations_total", "ok"), 2);
    EXPECT_EQ(of_tenant(during, "rnicd_registrations_total", "error") -
                  of_tenant(before, "rnicd_registrations_total", "error"),
              1);
    EXPECT_EQ(grown("rnicd_registration_failures_total{reason=\"mdl_chain_empty\"}"), 1);
    // The refused one never reached the card.
    EXPECT_EQ(grown("rnicd_registration_duration_seconds_count{size_class=\"up_to_64KiB\"}"), 2);
    EXPECT_EQ(
        of_tenant(during, "rnicd_deregistrations_total", "ok") - of_tenant(before, "rnicd_deregistrations_total", "ok"),
        1);
    EXPECT_EQ(grown("rnicd_tokens_revoked_total{cause=\"deregister\"}"), 1);
    EXPECT_EQ(grown("rnicd_sessions_opened_total"), 1);
    EXPECT_GE(grown("rnicd_tokens_issued_total{kind=\"local\"}"), 2);
    EXPECT_GE(grown("rnicd_tokens_issued_total{kind=\"remote\"}"), 2);
    EXPECT_EQ(during.Value("rnicd_rpcs_total{code=\"INVALID_ARGUMENT\",method=\"MemoryService.RegisterMr\"}"), 1);
    ExpectOk(session.CloseSession());
  }
  ExpectNothingHeld(daemon(), idle());
  const MetricsPage after = Fetch();
  for (const char* gauge : {"rnicd_sessions", "rnicd_memory_objects", "rnicd_memory_bytes", "rnicd_memory_regions",
                            "rnicd_registered_pages", "rnicd_registered_bytes", "rnicd_device_regions"}) {
    EXPECT_EQ(after.Total(gauge), 0) << gauge;
  }
  const auto grown = [&](const std::string& sample) { return after.Value(sample) - before.Value(sample); };
  EXPECT_EQ(grown("rnicd_sessions_ended_total{cause=\"closed\"}"), 1);
  EXPECT_EQ(grown("rnicd_reclaimed_bytes_total{cause=\"closed\"}"), 16 * kPage);
  EXPECT_EQ(grown("rnicd_reclaimed_regions_total{cause=\"closed\"}"), 3);
  EXPECT_EQ(grown("rnicd_tokens_revoked_total{cause=\"closed\"}"), 1);
  // One by request, one at the end of the session.
  EXPECT_EQ(
      of_tenant(after, "rnicd_deregistrations_total", "ok") - of_tenant(before, "rnicd_deregistrations_total", "ok"),
      2);
}

TEST_F(MetricsPages, WorkRequestsMoveTheirCounters) {
  const MetricsPage before = Fetch();
  auto demo = ChildProcess::Start({.command = {ExecutableForEveryone(RNICCTL_PATH), "demo", "fast-register",
                                               "--socket-dir=" + daemon().socket_dir(), "--pages", "16"},
                                   .uid = WorkloadUid()});
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_EQ((*demo)->WaitForEnd(6 * kTimeout).value_or(ProcessEnd()).exit_code, 0) << (*demo)->errors().Text();
  const MetricsPage after = Fetch();
  const auto grown = [&](const std::string& prefix) { return after.Sum(prefix) - before.Sum(prefix); };
  EXPECT_EQ(grown("rnicd_completions_total{operation=\"fast_register\",result=\"success\"}"), 1);
  EXPECT_GE(grown("rnicd_completions_total{operation=\"write\",result=\"success\"}"), 1);
  // Whichever way this provider's card implements it.
  EXPECT_EQ(grown("rnicd_fast_registrations_total{"), 1);
  EXPECT_EQ(grown("rnicd_fast_registrations_total{engine=\"none\""), 0);
}

TEST_F(MetricsPages, APortIsToldWhereTheKernelKnowsOne) {
  const MetricsPage page = Fetch();
  const bool of_the_kernel = ProviderUnderTest() == "verbs";
  const std::string port = "{adapter=\"" + AdapterUnderTest() + "\",state=\"";
  EXPECT_EQ(page.Has("rnicd_port_state" + port + "active\"}"), of_the_kernel);
  EXPECT_EQ(page.Total("rnicd_port_state") > 0, of_the_kernel);
  EXPECT_EQ(page.Total("rnicd_port_statistics_total") > 0, of_the_kernel);
  EXPECT_EQ(page.Value("rnicd_adapter_healthy{adapter=\"" + AdapterUnderTest() + "\"}"), 1);
  EXPECT_GE(page.Value("rnicd_adapter_probes_total{adapter=\"" + AdapterUnderTest() + "\",result=\"ok\"}"), 1);
}

TEST_F(MetricsPages, ReclaimAfterAKillIsCountedAsSuch) {
  const std::string bytes = "rnicd_reclaimed_bytes_total{cause=\"process_exited\"}";
  const std::string sessions = "rnicd_sessions_ended_total{cause=\"process_exited\"}";
  const MetricsPage before = Fetch();
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(client, nullptr);
  client->MustRun("open");
  const std::string memory = client->MustRun("alloc 65536").values["memory"];
  client->MustRun("register " + memory + " 65536 0");
  client->KillHard();
  ExpectNothingHeld(daemon(), idle());
  const MetricsPage after = Fetch();
  EXPECT_EQ(after.Value(bytes) - before.Value(bytes), 65536);
  EXPECT_EQ(after.Value(sessions) - before.Value(sessions), 1);
}

TEST_F(MetricsPages, PromtoolFindsNothingToComplainAbout) {
  {
    TestSession session(daemon());
    session.RegisterWhole(session.CreateMr(), session.SealedMemory(kPage), kPage);
  }
  const HttpAnswer answer = HttpGet(address_, "/metrics");
  EXPECT_EQ(MetricsPage(answer.body).faults(), "");
  const std::string promtool = FindPromtool();
  if (promtool.empty()) {
    return;
  }
  auto check = ChildProcess::Start({.command = {promtool, "check", "metrics"}});
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_TRUE((*check)->WriteLine(answer.body));
  (*check)->CloseInput();
  const std::optional<ProcessEnd> end = (*check)->WaitForEnd();
  ASSERT_TRUE(end.has_value());
  (*check)->errors().WaitForEnd(kTimeout);
  EXPECT_EQ(end->exit_code, 0) << (*check)->errors().Text() << (*check)->output().Text();
}

class MetricsOfRefusals : public MetricsPages {
 protected:
  MetricsOfRefusals()
      // The steps before the flood need room for connections whose end the daemon has not yet noticed.
      : MetricsPages({kMetricsOnFreePort, "--max_connections_per_uid=16"}) {}
};

TEST_F(MetricsOfRefusals, RefusedConnectionsAreCounted) {
  const double before = Fetch().Sum("rnicd_connections_refused_total{");
  {
    std::vector<std::unique_ptr<FdSocket>> sockets;
    for (int count = 0; count < 24; ++count) {
      sockets.push_back(std::make_unique<FdSocket>(daemon().fd_socket()));
    }
    EXPECT_TRUE(Eventually([&] { return Fetch().Sum("rnicd_connections_refused_total{") - before >= 8; }));
  }
  // The fixture's teardown needs the connections' slots.
  EXPECT_TRUE(
      Eventually([this] { return RawClient(daemon().rpc_socket()).Call(&AdapterStub::ListAdapters, {}).ok(); }));
}

TEST(MetricsOff, EmptyAddressServesNoPage) {
  auto daemon = DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  EXPECT_EQ(AdminStatus(**daemon).metrics_address(), "");
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

}  // namespace
}  // namespace rnicd::test
