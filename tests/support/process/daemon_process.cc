#include "tests/support/process/daemon_process.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/status.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

bool Names(const std::vector<std::string>& flags, const std::string& flag) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& given) { return given.starts_with(flag); });
}

// Programs of one build can test the daemon of another: the instrumented daemon, by clients whose gRPC is not.
std::string DaemonPath() {
  const char* const other = std::getenv("RNICD_TEST_DAEMON");
  return other != nullptr && *other != '\0' ? other : RNICD_DAEMON_PATH;
}

std::string Describe(const ProcessEnd& end) {
  return end.signal != 0 ? "signal " + std::to_string(end.signal) : "exit code " + std::to_string(end.exit_code);
}

}  // namespace

std::string PolicyFlag(const std::string& policy) {
  static const TempDir folder;
  static std::map<std::string, std::string> paths;
  std::string& path = paths[policy];
  if (path.empty()) {
    path = folder.path() + "/" + std::to_string(paths.size()) + ".textproto";
    if (!(std::ofstream(path) << policy).flush().good()) {
      std::fprintf(stderr, "%s cannot be written\n", path.c_str());
      std::exit(1);
    }
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_read | perms::owner_write | perms::group_read | perms::others_read);
  }
  return "--policy_file=" + path;
}

std::string LimitsFlag(const std::string& limits) {
  return PolicyFlag("tenant { name: \"uid\" sharing: SHARING_EACH_UID " + limits + " }\ndefault_tenant: \"uid\"\n");
}

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Launch(const DaemonOptions& options) {
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess);
  daemon->directory_ = options.directory != nullptr ? options.directory : std::make_shared<TempDir>();
  const bool foreign = options.uid.has_value();
  if (foreign && TwoUids()) {
    daemon->directory_->GiveTo(*options.uid);
  }
  std::vector<std::string> command = {foreign ? ExecutableForEveryone(DaemonPath()) : DaemonPath()};
  const std::vector<std::string> place = daemon->PlaceFlags();
  command.insert(command.end(), place.begin(), place.end());
  if (!Names(options.flags, "--metrics_address")) {
    command.emplace_back("--metrics_address=");
  }
  const std::vector<std::string> extra = DaemonFlagsOfTheEnvironment(options.flags);
  command.insert(command.end(), extra.begin(), extra.end());
  command.insert(command.end(), options.flags.begin(), options.flags.end());
  RNICD_ASSIGN_OR_RETURN(daemon->process_, ChildProcess::Start({.command = command,
                                                                .uid = options.uid,
                                                                .descriptors_max = options.descriptors_max,
                                                                .wrapper = options.wrapper,
                                                                .stderr_file = options.stderr_file}));
  return daemon;
}

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(const DaemonOptions& options) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DaemonProcess> daemon, Launch(options));
  Eventually([&] { return daemon->AcceptsOnAllSockets() || !daemon->process_->running(); });
  if (!daemon->AcceptsOnAllSockets()) {
    daemon->process_->errors().WaitForEnd(std::chrono::milliseconds(100));
    return absl::UnavailableError("rnicd does not serve; it said: " + daemon->log());
  }
  return daemon;
}

absl::Status DaemonProcess::Stop(std::chrono::milliseconds limit) {
  BeginStop();
  const std::optional<ProcessEnd> end = process_->WaitForEnd(limit);
  if (!end.has_value()) {
    return absl::DeadlineExceededError("rnicd does not stop; it said: " + log());
  }
  process_->errors().WaitForEnd(kTimeout);
  if (end->exit_code != 0) {
    return absl::InternalError("rnicd ended with " + Describe(*end) + "; it said: " + log());
  }
  return absl::OkStatus();
}

}  // namespace rnicd::test
