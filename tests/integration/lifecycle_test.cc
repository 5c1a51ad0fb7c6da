// The daemon as a process: starting, refusing to start, stopping.
#include <unistd.h>
#include <algorithm>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

std::unique_ptr<DaemonProcess> MustStart(const DaemonOptions& options = {}) {
  auto started = DaemonProcess::Start(options);
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

void ExpectStops(DaemonProcess& daemon) {
  const absl::Status stopped = daemon.Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

// Runs a daemon that is expected to end by itself.
struct ShortRun {
  std::optional<ProcessEnd> end;
  std::string errors;
};
ShortRun RunToItsEnd(const DaemonOptions& options) {
  auto launched = DaemonProcess::Launch(options);
  EXPECT_TRUE(launched.ok()) << launched.status();
  ShortRun run;
  run.end = (*launched)->process().WaitForEnd();
  (*launched)->process().errors().WaitForEnd(kTimeout);
  run.errors = (*launched)->log();
  return run;
}

TEST(Lifecycle, ServesAndStopsCleanly) {
  const auto daemon = MustStart({.flags = {kMetricsOnFreePort}});
  ASSERT_NE(daemon, nullptr);
  const IdleState idle = MeasureIdle(*daemon);
  EXPECT_TRUE(daemon->process().errors().WaitFor("ready", kTimeout));
  const v1::GetStatusResponse status = AdminStatus(*daemon);
  EXPECT_EQ(status.pid(), daemon->process().pid());
  EXPECT_EQ(status.provider(), ProviderUnderTest());
  EXPECT_FALSE(status.version().empty());
  EXPECT_FALSE(status.metrics_address().empty());
  ExpectNothingHeld(*daemon, idle);
  ExpectStops(*daemon);
  for (const std::string& socket : {daemon->rpc_socket(), daemon->fd_socket(), daemon->admin_socket()}) {
    EXPECT_FALSE(std::filesystem::exists(socket)) << socket << " is left behind";
  }
}

TEST(Lifecycle, AdminSocketIsForItsOwnerOnly) {
  const auto daemon = MustStart();
  ASSERT_NE(daemon, nullptr);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(daemon->admin_socket()).permissions() & perms::mask,
            perms::owner_read | perms::owner_write);
  ExpectStops(*daemon);
}

TEST(Lifecycle, SecondDaemonThatDoesNotTakeOverIsRefused) {
  const auto first = MustStart();
  ASSERT_NE(first, nullptr);
  const ShortRun second =
      RunToItsEnd({.flags = {"--handover_dir=" + first->socket_dir() + "-none"}, .directory = first->directory()});
  ASSERT_TRUE(second.end.has_value());
  EXPECT_EQ(second.end->exit_code, 1);
  EXPECT_NE(second.errors.find(first->socket_dir()), std::string::npos) << second.errors;
  const IdleState idle = MeasureIdle(*first);
  ExpectNothingHeld(*first, idle);
  ExpectStops(*first);
}

TEST(Lifecycle, SocketsOfAKilledDaemonAreReplaced) {
  const auto first = MustStart();
  ASSERT_NE(first, nullptr);
  first->KillHard();
  ASSERT_TRUE(std::filesystem::exists(first->rpc_socket()));
  const auto second = MustStart({.directory = first->directory()});
  ASSERT_NE(second, nullptr);
  const IdleState idle = MeasureIdle(*second);
  ExpectNothingHeld(*second, idle);
  ExpectStops(*second);
}

TEST(Lifecycle, SigtermEndsOpenSessionsAndSaysWhy) {
  const auto daemon = MustStart();
  ASSERT_NE(daemon, nullptr);
  TestSession session(*daemon);
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  session.RegisterWhole(session.CreateMr(), memory, kPage);
  ExpectStops(*daemon);
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].session_ending().cause(), "daemon_stopping");
}

// A slow card must not delay the operator. Exit code 1 means that not everything could be reclaimed.
TEST(Lifecycle, StopIsBoundedWhileARequestIsRunning) {
  const auto daemon =
      MustStart({.flags = {"--drain_timeout_ms=300", "--pending_threshold_bytes=4096", HoldableRegistrationsFlag()}});
  ASSERT_NE(daemon, nullptr);
  TestSession session(*daemon);
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t before = session.CreateMr();
  session.RegisterWhole(before, memory, kPage);
  v1::RegisterMrRequest request = RegisterRequest(session.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  request.set_allow_pending(true);
  const HeldRegistrations held;
  EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  // Done by the other worker. Jobs are begun in their order, so the first has.
  EXPECT_EQ(session.Deregister(before, true, 1).response.ntstatus(), kStatusPending);
  EXPECT_EQ(events.NextCompletion().request_context(), 1u);
  daemon->process().Signal(SIGTERM);
  const std::optional<ProcessEnd> end = daemon->process().WaitForEnd();
  ASSERT_TRUE(end.has_value()) << "the daemon does not stop";
  EXPECT_EQ(end->exit_code, 1);
}

// Only what a worker has begun is waited for.
TEST(Lifecycle, StopCancelsWhatIsQueued) {
  constexpr int kQueued = 300;
  const auto daemon = MustStart({.flags = {"--worker_threads=1", "--pending_threshold_bytes=4096",
                                           "--drain_timeout_ms=600000", HoldableRegistrationsFlag()}});
  ASSERT_NE(daemon, nullptr);
  TestSession session(*daemon);
  const uint64_t memory = session.SealedMemory(kPage);
  HeldRegistrations held;
  for (int count = 0; count < kQueued; ++count) {
    v1::RegisterMrRequest request = RegisterRequest(session.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage);
    request.set_allow_pending(true);
    EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  }
  EventReader events(session);
  daemon->BeginStop();
  EXPECT_TRUE(Eventually([&] { return !session.Call(&SessionStub::GetSession, {}).ok(); }));
  held.LetGo();
  ExpectStops(*daemon);
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  ASSERT_EQ(rest.size(), kQueued + 1u) << "each request has one outcome";
  const auto cancelled = std::count_if(rest.begin(), rest.end(), [](const v1::WatchEventsResponse& event) {
    return event.request_completed().error().reason() == v1::ERROR_REASON_SESSION_ENDING;
  });
  EXPECT_GE(cancelled, kQueued - 1) << "all but the one that the worker may have begun";
  EXPECT_EQ(rest[kQueued].session_ending().cause(), "daemon_stopping");
}

TEST(Lifecycle, EveryBadFlagIsNamedAtOnce) {
  const ShortRun run =
      RunToItsEnd({.flags = {"--provider=abacus", "--soft_adapters=0", "--log_level=loud", "--log_format=poem",
                             "--metrics_address=nowhere", "--verbs_devices=rxa,", "--verbs_gid=nearest",
                             "--verbs_fast_engine=steam", "--verbs_max_registration_bytes=1", "--verbs_max_regions=-1",
                             "--verbs_max_fast_register_pages=1", "--verbs_adapter_flags=0x1", "--verbs_ack_timeout=32",
                             "--verbs_probe_interval_ms=1", "--hold_registrations_while=hold"}});
  ASSERT_TRUE(run.end.has_value());
  EXPECT_EQ(run.end->exit_code, 2);
  for (const char* flag :
       {"provider", "soft_adapters", "log_level", "log_format", "metrics_address", "verbs_devices", "verbs_gid",
        "verbs_fast_engine", "verbs_max_registration_bytes", "verbs_max_regions", "verbs_max_fast_register_pages",
        "verbs_adapter_flags", "verbs_ack_timeout", "verbs_probe_interval_ms", "hold_registrations_while"}) {
    EXPECT_NE(run.errors.find("--" + std::string(flag) + ":"), std::string::npos)
        << flag << " is not named in: " << run.errors;
  }
  EXPECT_NE(run.errors.find("soft, verbs"), std::string::npos) << "what there is must be named: " << run.errors;
}

// No machine has a card with this name. The daemon leaves nothing behind for the next one.
TEST(Lifecycle, VerbsWithoutItsCardIsRefusedByName) {
  const auto directory = std::make_shared<TempDir>();
  const ShortRun run =
      RunToItsEnd({.flags = {"--provider=verbs", "--verbs_devices=no_such_card0"}, .directory = directory});
  ASSERT_TRUE(run.end.has_value());
  EXPECT_EQ(run.end->exit_code, 1);
  EXPECT_NE(run.errors.find("no_such_card0"), std::string::npos) << run.errors;
  const auto next = MustStart({.directory = directory});
  ASSERT_NE(next, nullptr);
  ExpectStops(*next);
}

// A restart would not mend them: the unit knows status 2.
TEST(Lifecycle, UnknownFlagsAndValuesOfTheWrongKindAreRefusedWithStatusTwo) {
  for (const char* const flag : {"no_such_flag=1", "max_sessions=many", "status_page=perhaps", "flagfile=/none"}) {
    const ShortRun run = RunToItsEnd({.flags = {std::string("--") + flag}});
    ASSERT_TRUE(run.end.has_value());
    EXPECT_EQ(run.end->exit_code, 2) << flag;
    EXPECT_NE(run.errors.find(std::string(flag).substr(0, std::string(flag).find('='))), std::string::npos)
        << run.errors;
  }
}

TEST(Lifecycle, ALimitThatIsNoFlagIsRefusedWithItsFieldOfThePolicy) {
  const std::string errors =
      RunToItsEnd({.flags = {"--max_regions_per_session=5", "--max_sessions_per_uid=5", "--max_connection_per_uid=5"}})
          .errors;
  EXPECT_NE(errors.find("--max_regions_per_session: there is no such flag; set session_limits { regions: "),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find("--max_sessions_per_uid: there is no such flag; set limits { sessions: "), std::string::npos)
      << errors;
  EXPECT_NE(errors.find("--max_connection_per_uid: there is no such flag\n"), std::string::npos) << "no limit's name";
}

TEST(Lifecycle, TheDefaultPolicyIsPrintedAndIsAPolicyFile) {
  const auto printing = DaemonProcess::Launch({.flags = {"--print_default_policy"}});
  ASSERT_TRUE(printing.ok()) << printing.status();
  (*printing)->process().output().WaitForEnd(kTimeout);
  const std::string policy = (*printing)->process().output().Text();
  EXPECT_NE(policy.find("SHARING_EACH_UID"), std::string::npos) << policy;
  const auto daemon = MustStart({.flags = {PolicyFlag(policy)}});
  ASSERT_NE(daemon, nullptr);
  ExpectStops(*daemon);
}

TEST(Lifecycle, FlagsAreReadFromAFile) {
  const auto directory = std::make_shared<TempDir>();
  const std::string file = directory->path() + "/flags";
  std::ofstream(file) << "# limits\r\n--max_sessions=1 # of the node\r\n";
  const auto daemon = MustStart({.flags = {"--flagfile=" + file}, .directory = directory});
  ASSERT_NE(daemon, nullptr);
  {
    const IdleState idle = MeasureIdle(*daemon);
    {
      TestSession only(*daemon);
      RawClient second(daemon->rpc_socket());
      ExpectRefused(second.Call(&SessionStub::OpenSession, {}), ErrorReason::QUOTA_SESSIONS);
    }
    ExpectNothingHeld(*daemon, idle);
  }
  ExpectStops(*daemon);
}

// With root the daemon runs as another user; without, as the test's unprivileged user.
TEST(Lifecycle, RunsWithoutRoot) {
  const auto daemon = MustStart({.uid = OtherUid()});
  ASSERT_NE(daemon, nullptr);
  const IdleState idle = MeasureIdle(*daemon);
  {
    TestSession session(*daemon);
    const uint64_t memory = session.SealedMemory(16 * kPage);
    EXPECT_NE(
        session.RegisterWhole(session.CreateMr(), memory, 16 * kPage, v1::MR_FLAG_ALLOW_REMOTE_READ).remote_token(),
        0u);
  }
  ExpectNothingHeld(*daemon, idle);
  ExpectStops(*daemon);
}

}  // namespace
}  // namespace rnicd::test
