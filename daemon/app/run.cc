#include "daemon/app/run.h"

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
#include "base/heap.h"
#include "daemon/app/app.h"
#include "daemon/app/config.h"
#include "daemon/app/process_host.h"

namespace rnicd::app {
namespace {

constexpr int kCouldNotRun = 1;
constexpr int kBadFlags = 2;

int Run(Config config, ProcessHost& host) {
  const auto confined = host.Confine(config);
  App app(std::move(config), host);
  const absl::Status started = confined.ok() ? app.Start(*confined) : confined.status();
  if (!started.ok()) {
    app.logger().Error("could not start", {{"error", std::string(started.message())}});
    return kCouldNotRun;
  }
  host.OnServing();
  ProcessHost::Asked asked = host.Wait();
  while (asked.order == ProcessHost::Order::kReloadPolicy) {
    // The log has the errors in the file.
    (void)app.ReloadPolicy();
    asked = host.Wait();
  }
  app.logger().Info("stopping", {asked.by});
  if (!app.Stop()) {
    // Destroying the parts would wait for the sessions or probes that did not end; the kernel reclaims everything.
    std::_Exit(kCouldNotRun);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int RunDaemon(int argc, char** argv, std::span<const ProviderKind> cards) {
  KeepHeapsSmall();
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
  Config config = ConfigFromFlags(cards, errors);
  for (size_t index = 1; index < rest.size(); ++index) {
    errors.push_back(std::string("unexpected argument: ") + rest[index]);
  }
  if (!errors.empty()) {
    for (const std::string& error : errors) {
      std::fprintf(stderr, "rnicd: %s\n", error.c_str());
    }
    return kBadFlags;
  }
  return RunInHost([&config](ProcessHost& host) { return Run(std::move(config), host); });
}

}  // namespace rnicd::app
