// rnicctl as operators and their scripts use it: the real program against the real daemon.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/admin_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

// `grant`: value of RNICD_GRANT in the environment.
std::unique_ptr<ChildProcess> StartTool(const DaemonProcess& daemon, const std::vector<std::string>& arguments,
                                        std::optional<uid_t> uid, const std::string& grant) {
  std::vector<std::string> command = {"env", "RNICD_GRANT=" + grant, ExecutableForEveryone(RNICCTL_PATH),
                                      "--socket-dir=" + daemon.socket_dir()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = ChildProcess::Start({.command = std::move(command), .uid = uid});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    std::abort();
  }
  return *std::move(process);
}

class RnicctlAdmin : public DaemonTest {
 protected:
  std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& arguments,
                                      std::optional<uid_t> uid = std::nullopt, const std::string& grant = "") {
    return StartTool(daemon(), arguments, uid, grant);
  }
  RnicctlRun Run(const std::vector<std::string>& arguments) { return Finish(*Start(arguments)); }

  // Another process that holds a page until it is stopped, and prints what it holds.
  std::unique_ptr<ChildProcess> Holder(std::vector<std::string> arguments, const std::string& grant = "") {
    arguments.insert(arguments.begin(), {"register", "--size=4KiB", "--hold=forever", "--json"});
    auto holder = Start(arguments, WorkloadUid(), grant);
    EXPECT_TRUE(Eventually([&] { return Json::accept(holder->output().Text()); })) << holder->errors().Text();
    return holder;
  }
  static void EndHolder(ChildProcess& holder) {
    holder.Signal(SIGTERM);
    EXPECT_EQ(holder.WaitForEnd().value_or(ProcessEnd()).exit_code, 0) << holder.errors().Text();
  }
};

bool Has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

TEST_F(RnicctlAdmin, SecretAloneIsForScripts) {
  const RnicctlRun created = Run({"grant", "create", "--name=script", "--secret-only"});
  ASSERT_EQ(created.exit_code, 0) << created.errors;
  const std::string secret = created.output.substr(0, created.output.find('\n'));
  EXPECT_EQ(created.output, secret + "\n");
  const RnicctlRun run = Finish(*Start({"alloc", "--size=4KiB"}, WorkloadUid(), secret));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  const Json listed = Run({"grant", "list", "--json"}).json();
  EXPECT_EQ(Run({"grant", "revoke", listed["grants"][0]["grant_id"]}).exit_code, 0);
}

TEST_F(RnicctlAdmin, HealthIsAnExitCodeForScripts) {
  const RnicctlRun ready = Run({"health"});
  EXPECT_EQ(ready.exit_code, 0) << ready.errors;
  EXPECT_EQ(ready.output, "ready\n");
  EXPECT_EQ(Run({"health", "--json"}).json()["ready"], true);
  EXPECT_EQ(Run({"health", "--live", "--json"}).json()["live"], true);
}

TEST(RnicctlHealth, OfAHangingCardIsAFailure) {
  const HeldRegistrations held;
  const auto hanging = DaemonProcess::Start({.flags = {"--health_timeout_ms=200", HoldableRegistrationsFlag()}});
  ASSERT_TRUE(hanging.ok()) << hanging.status();
  const RnicctlRun run = Finish(*StartTool(**hanging, {"health"}, std::nullopt, ""));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.output, "not ready\n");
  EXPECT_TRUE(Has(run.errors, "no adapter can be used")) << run.errors;
  const RnicctlRun live = Finish(*StartTool(**hanging, {"health", "--live"}, std::nullopt, ""));
  EXPECT_EQ(live.exit_code, 0) << live.errors << "the daemon itself is well";
}

TEST_F(RnicctlAdmin, GrantIsMadePresentedListedAndRevoked) {
  const RnicctlRun created = Run({"grant", "create", "--name=tool", "--lifetime=1h", "--pinned=8KiB", "--sessions=2",
                                  "--rate=1000", "--limits=regions=7", "--session-limits=pinned_bytes=4KiB", "--json"});
  ASSERT_EQ(created.exit_code, 0) << created.errors;
  const Json grant = created.json();
  EXPECT_EQ(grant["tenant"], "grant/tool");
  const std::string secret = grant["secret"];
  const std::string id = grant["grant_id"];

  // Grant in the environment, then as an option.
  const auto by_environment = Holder({}, secret);
  const auto by_option = Holder({"--grant=" + secret});
  const Json listed = Run({"grant", "list", "--json"}).json();
  ASSERT_EQ(listed["grants"].size(), 1u);
  EXPECT_EQ(listed["grants"][0]["grant_id"], id);
  EXPECT_EQ(listed["grants"][0]["sessions"], 2);
  EXPECT_EQ(listed["grants"][0]["limits"]["pinned_bytes"], 8192);
  EXPECT_EQ(listed["grants"][0]["limits"]["regions"], 7);
  EXPECT_EQ(listed["grants"][0]["limits"]["requests_per_second"], 1000);
  EXPECT_EQ(listed["grants"][0]["session_limits"]["pinned_bytes"], 4096);
  EXPECT_GT(listed["grants"][0]["remaining_ms"], 3'000'000);
  const RnicctlRun table = Run({"grant", "list"});
  EXPECT_TRUE(Has(table.output, "grant/tool")) << table.output;
  EXPECT_FALSE(Has(table.output, secret));
  const Json sessions = Run({"sessions", "--json"}).json();
  ASSERT_EQ(sessions["sessions"].size(), 2u);
  EXPECT_EQ(sessions["sessions"][0]["tenant"], "grant/tool");
  const RnicctlRun third = Finish(*Start({"alloc", "--size=4KiB"}, WorkloadUid(), secret));
  EXPECT_EQ(third.exit_code, 1);
  EXPECT_TRUE(Has(third.errors, "QUOTA_SESSIONS") && Has(third.errors, "limit 2, used 2, requested 1")) << third.errors;

  const RnicctlRun revoked = Run({"grant", "revoke", id});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.errors;
  EXPECT_EQ(revoked.output, "revoked grant " + id + "; 2 sessions ended by it\n");
  for (ChildProcess* holder : {by_environment.get(), by_option.get()}) {
    const RnicctlRun run = Finish(*holder);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_TRUE(Has(run.errors, "grant_revoked")) << run.errors;
  }
  const RnicctlRun late = Finish(*Start({"alloc", "--size=4KiB"}, WorkloadUid(), secret));
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_TRUE(Has(late.errors, "GRANT_REFUSED")) << late.errors;
  EXPECT_FALSE(Has(late.errors, secret)) << late.errors;
}

TEST_F(RnicctlAdmin, TenantsAndTopShowWhoHoldsWhat) {
  const auto holder = Holder({"--label=watched"});
  const Json tenants = Run({"tenants", "--json"}).json();
  bool found = false;
  for (const Json& tenant : tenants["tenants"]) {
    found = found || (tenant["sessions"] == 1 && tenant["resources"]["pinned_bytes"]["used"] == 4096);
  }
  EXPECT_TRUE(found) << tenants.dump(2);
  const RnicctlRun table = Run({"tenants"});
  EXPECT_TRUE(Has(table.output, "TENANT") && Has(table.output, "4 KiB")) << table.output;

  const RnicctlRun top = Run({"top", "--count=2", "--interval=100ms"});
  EXPECT_EQ(top.exit_code, 0) << top.errors;
  EXPECT_TRUE(top.output.starts_with("rnicd ")) << top.output;
  const size_t second = top.output.find("\n\nrnicd ");
  ASSERT_NE(second, std::string::npos) << top.output;
  EXPECT_TRUE(Has(top.output.substr(0, second), "watched") && Has(top.output.substr(second), "watched")) << top.output;
  EXPECT_FALSE(Has(top.output, "\x1b"));
  const Json picture = Run({"top", "--count=1", "--json"}).json();
  EXPECT_EQ(picture["status"]["sessions"], 1);
  ASSERT_EQ(picture["sessions"].size(), 1u);
  EXPECT_EQ(picture["sessions"][0]["label"], "watched");
  EndHolder(*holder);
}

TEST_F(RnicctlAdmin, TopIntoAPipeGoesOnUntilItIsStopped) {
  const auto top = Start({"top", "--interval=100ms"});
  EXPECT_TRUE(Eventually([&] {
    const std::string text = top->output().Text();
    const size_t second = text.find("\n\nrnicd ");
    return second != std::string::npos && text.find("\n\nrnicd ", second + 1) != std::string::npos;
  }));
  top->Signal(SIGINT);
  EXPECT_TRUE(top->WaitForEnd().has_value());
}

TEST_F(RnicctlAdmin, SessionIsInspectedAndEvicted) {
  const auto holder = Holder({"--label=victim"});
  const std::string id = Json::parse(holder->output().Text())["session_id"];
  const Json inspected = Run({"inspect", id, "--json"}).json();
  EXPECT_EQ(inspected["session"]["label"], "victim");
  EXPECT_EQ(inspected["session"]["uid"], WorkloadUid());
  ASSERT_EQ(inspected["regions"].size(), 1u);
  EXPECT_EQ(inspected["regions"][0]["pages"], 1);
  const RnicctlRun shown = Run({"inspect", id});
  EXPECT_TRUE(Has(shown.output, "victim") && Has(shown.output, "remote-write")) << shown.output;

  const RnicctlRun evicted = Run({"evict", id});
  EXPECT_EQ(evicted.exit_code, 0) << evicted.errors;
  EXPECT_EQ(evicted.output, "evicted session " + id + "; taken back: 1 region, 4 KiB pinned, 4 KiB of memory\n");
  const RnicctlRun victim = Finish(*holder);
  EXPECT_EQ(victim.exit_code, 1);
  EXPECT_TRUE(Has(victim.errors, "SESSION_ENDING") && Has(victim.errors, "evicted")) << victim.errors;
  for (const char* command : {"inspect", "evict"}) {
    const RnicctlRun again = Run({command, id});
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_TRUE(Has(again.errors, "SESSION_NOT_FOUND")) << again.errors;
  }
}

TEST_F(RnicctlAdmin, DrainWaitsAndItsExitCodeTells) {
  const auto holder = Holder({});
  const RnicctlRun drained = Run({"drain"});
  EXPECT_EQ(drained.exit_code, 0) << drained.errors;
  EXPECT_EQ(drained.output, "draining: left are 1 session, 1 region, 4 KiB pinned\n");
  EXPECT_TRUE(Has(Run({"status"}).output, "draining          yes"));
  const RnicctlRun refused = Run({"alloc", "--size=4KiB"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(Has(refused.errors, "DAEMON_DRAINING")) << refused.errors;
  const RnicctlRun too_short = Run({"drain", "--wait=300ms", "--json"});
  EXPECT_EQ(too_short.exit_code, 1);
  EXPECT_EQ(too_short.json()["sessions"], 1);
  EXPECT_TRUE(Has(too_short.errors, "DEADLINE_EXCEEDED")) << too_short.errors;

  const auto waiting = Start({"drain", "--wait=5m"});
  EXPECT_TRUE(Eventually([&] { return Has(waiting->output().Text(), "left are 1 session"); }));
  EndHolder(*holder);
  const RnicctlRun empty = Finish(*waiting);
  EXPECT_EQ(empty.exit_code, 0) << empty.errors;
  EXPECT_TRUE(empty.output.ends_with("draining: nothing is left\n")) << empty.output;
  const RnicctlRun resumed = Run({"drain", "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(resumed.output, "not draining: the daemon takes things on\n");
  EXPECT_EQ(Run({"alloc", "--size=4KiB"}).exit_code, 0);
}

TEST_F(RnicctlAdmin, LogLevelIsChangedAndTold) {
  const std::string before = Run({"log-level", "debug", "--json"}).json()["previous"];
  EXPECT_EQ(Run({"log-level", "warning"}).output, "log level warning, was debug\n");
  EXPECT_EQ(Run({"log-level", before}).exit_code, 0);
  const RnicctlRun wrong = Run({"log-level", "loud"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(Has(wrong.errors, "debug, info, warning or error")) << wrong.errors;
}

TEST(RnicctlReload, SaysWhichLineIsWrong) {
  const TempDir directory;
  const std::string path = directory.path() + "/policy";
  const std::string good = "tenant { name: \"all\" }\ndefault_tenant: \"all\"\n";
  std::ofstream(path) << good;
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  auto daemon = DaemonProcess::Start({.flags = {"--policy_file=" + path}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const auto reload = [&] { return Finish(*StartTool(**daemon, {"reload"}, std::nullopt, "")); };
  EXPECT_EQ(reload().output, "the policy file was read and is in force\n");
  std::ofstream(path) << good << "tenant { name: \"b\" match { uid: 1 } limits { pinned_bytes: 5000 } }\n";
  const RnicctlRun refused = reload();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(Has(refused.errors, "POLICY_REFUSED") && Has(refused.errors, path + ":3: limits.pinned_bytes"))
      << refused.errors;
  // The response arrives even for very many errors.
  std::ofstream many(path);
  many << good;
  for (int number = 0; number < 100; ++number) {
    many << "tenant { name: \"" << std::string(1000, 'x') << number << "\" limits { pinned_bytes: 5000 } }\n";
  }
  many.close();
  EXPECT_TRUE(Has(reload().errors, "POLICY_REFUSED"));
  EXPECT_TRUE((*daemon)->Stop().ok());
}

// A signal has no answer, so what it was refused for must be seen elsewhere.
TEST(RnicctlReload, RefusedFileShowsUntilAnotherIsAccepted) {
  const TempDir directory;
  const std::string path = directory.path() + "/policy";
  const std::string good = "tenant { name: \"all\" }\ndefault_tenant: \"all\"\n";
  const auto write = [&](const std::string& text) {
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), 0644), 0);
  };
  write(good);
  auto daemon = DaemonProcess::Start({.flags = {kMetricsOnFreePort, "--policy_file=" + path}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const auto status = [&] { return Finish(*StartTool(**daemon, {"status"}, std::nullopt, "")).output; };
  const auto refused = [&] {
    return MetricsPage(HttpGet(AdminStatus(**daemon).metrics_address(), "/metrics").body).Value("rnicd_policy_refused");
  };
  EXPECT_EQ(refused(), 0);
  for (const std::string& bad : {std::string(), std::string("x\n"), std::string("tenant { name: \"other\" }\n")}) {
    write(bad);
    (*daemon)->process().Signal(SIGHUP);
    EXPECT_TRUE(Eventually([&] { return AdminStatus(**daemon).policy_error().starts_with(path + ":"); })) << bad;
    EXPECT_EQ(refused(), 1);
    EXPECT_TRUE(Has(status(), "which is REFUSED")) << bad;
    write(good);
    (*daemon)->process().Signal(SIGHUP);
    EXPECT_TRUE(Eventually([&] { return AdminStatus(**daemon).policy_error().empty(); }));
    EXPECT_EQ(refused(), 0);
    EXPECT_FALSE(Has(status(), "REFUSED"));
  }
  std::remove(path.c_str());
  (*daemon)->process().Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return refused() == 1; }));
  EXPECT_TRUE((*daemon)->Stop().ok());
}

TEST_F(RnicctlAdmin, DumpIsOneDocument) {
  const auto holder = Holder({"--label=dumped"});
  const Json own = Json::parse(holder->output().Text());
  const RnicctlRun run = Run({"dump"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  const Json json = run.json();
  EXPECT_EQ(json["sessions"][0]["label"], "dumped");
  EXPECT_EQ(json["regions"][0]["mr_id"], own["regions"][0]["mr_id"]);
  EXPECT_TRUE(json["status"].contains("provider"));
  EndHolder(*holder);
}

}  // namespace
}  // namespace rnicd::test
