// rnicd: owns the node's RDMA adapters and hands registered memory to processes without privilege.
// SIGHUP reads the policy file again.
// Exit status: 0 after SIGTERM or SIGINT; 1 when it could not start or drain, and for a flag that does not exist; 2 for
// flags whose values are wrong.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/app.h"
#include "daemon/app/config.h"
#include "daemon/app/heap_trim.h"
#include "daemon/app/provider_registry.h"
#include "daemon/sandbox/sandbox.h"

namespace {

constexpr int kCouldNotRun = 1;
constexpr int kBadFlags = 2;

// Blocked before the first thread is made, so that all threads inherit it and only sigwait sees them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int Run(rnicd::app::Config config) {
  const sigset_t signals = BlockSignals();
  if (config.provider == "verbs") {
    rnicd::app::OpenFastModule(config.verbs);
  }
  const auto confined = rnicd::sandbox::EnterSandbox(config.sandbox);
  rnicd::app::App app(std::move(config));
  const absl::Status started = confined.ok() ? app.Start(*confined) : confined.status();
  if (!started.ok()) {
    app.logger().Error("could not start", {{"error", std::string(started.message())}});
    return kCouldNotRun;
  }
  int signal = 0;
  while (sigwait(&signals, &signal) != 0 || signal == SIGHUP) {
    // The log has the errors in the file.
    (void)app.ReloadPolicy();
  }
  app.logger().Info("stopping", {{"signal", signal}});
  if (!app.Stop()) {
    // Destroying the parts would wait for the sessions or probes that did not end; the kernel reclaims everything.
    std::_Exit(kCouldNotRun);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  rnicd::app::KeepHeapsSmall();
  // Debian builds abseil with deadlock detection that aborts the process on a lock-order cycle.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  absl::SetProgramUsageMessage(
      "owns the node's RDMA adapters and hands registered memory to processes without privilege.\n"
      "Flags can also stand in a file: --flagfile=/etc/rnicd/rnicd.flags");
  // Without this --help shows only the flags defined in this file.
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) { return absl::StrContains(file, "daemon/app/"); };
  usage.version_string = [] { return std::string("rnicd ") + RNICD_VERSION + "\n"; };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  std::vector<std::string> errors;
  rnicd::app::Config config = rnicd::app::ConfigFromFlags(errors);
  for (size_t index = 1; index < rest.size(); ++index) {
    errors.push_back(std::string("unexpected argument: ") + rest[index]);
  }
  if (!errors.empty()) {
    for (const std::string& error : errors) {
      std::fprintf(stderr, "rnicd: %s\n", error.c_str());
    }
    return kBadFlags;
  }
  return Run(std::move(config));
}
