#include "daemon/app/run.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/flags/command_line.h"
#include "base/system/heap.h"
#include "daemon/app/app.h"
#include "daemon/app/config/config.h"
#include "daemon/app/host/process_host.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/policy/default_policy.h"

namespace rnicd::app {
namespace {

constexpr int kCouldNotRun = 1;
constexpr int kBadFlags = 2;

bool IsLimit(std::string_view name) {
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    if (core::ResourceName(static_cast<core::Resource>(index)) == name) {
      return true;
    }
  }
  return false;
}

// Limits are fields of the policy: "max_regions_per_session" is regions of session_limits.
std::string AdviceFor(const std::string& flag) {
  absl::string_view field = flag;
  const bool of_session = absl::ConsumeSuffix(&field, "_per_session");
  if (!absl::ConsumePrefix(&field, "max_") || !(of_session || absl::ConsumeSuffix(&field, "_per_uid")) ||
      !IsLimit(std::string(field))) {
    return "";
  }
  return absl::StrCat("set ", of_session ? "session_limits" : "limits", " { ", field, ": ... } in --policy_file");
}

// The first order to stop tells a daemon that was taken over from what it does anyway. `drains`: there was one.
bool GoesOn(App& app, const ProcessHost::Asked& asked, bool& drains) {
  switch (asked.order) {
    case ProcessHost::Order::kReloadPolicy:
      // The log has the errors in the file.
      (void)app.ReloadPolicy();
      return true;
    case ProcessHost::Order::kEnd:
      return !app.retired() && !drains;
    case ProcessHost::Order::kStop:
      break;
  }
  const bool goes_on = app.retired() && !std::exchange(drains, true);
  if (goes_on) {
    app.logger().Info("goes on for its sessions, until they end or it is asked again", {asked.by});
  }
  return goes_on;
}

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
  for (bool drains = false; GoesOn(app, asked, drains); asked = host.Wait()) {
  }
  host.OnStopping();
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
  std::vector<std::string> errors =
      ReadFlags(argc, argv,
                {.purpose = "owns the node's RDMA adapters and hands registered memory to processes without privilege.",
                 .version = "rnicd " RNICD_VERSION,
                 .folder = "daemon/app/",
                 .advice = AdviceFor});
  Config config = ConfigFromFlags(cards, errors);
  if (!errors.empty()) {
    for (const std::string& error : errors) {
      std::fprintf(stderr, "rnicd: %s\n", error.c_str());
    }
    return kBadFlags;
  }
  if (config.print_default_policy) {
    std::fputs(std::string(policy::DefaultPolicyText()).c_str(), stdout);
    return std::fflush(stdout) == 0 ? EXIT_SUCCESS : kCouldNotRun;
  }
  return RunInHost([&config](ProcessHost& host) { return Run(std::move(config), host); });
}

}  // namespace rnicd::app
