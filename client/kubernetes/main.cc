// rnicd-device-plugin: offers registered memory of the node's rnicd to Kubernetes, as extended resources.
// Exit status: 0 after SIGTERM or SIGINT, and for --probe when the plugin serves; 1 when it could not start, when it
// does not serve, and for an unknown flag; 2 for flags with invalid values, or that do not suit the node.

#include <unistd.h>

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
#include "client/kubernetes/config.h"
#include "client/kubernetes/plugin.h"
#include "curl/curl.h"

namespace {

constexpr int kCouldNotRun = 1;
constexpr int kBadFlags = 2;

// Blocks the signals before the first thread is created, so that all threads inherit the mask and only sigwait receives
// them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int Run(rnicd::kubernetes::Config config) {
  const sigset_t signals = BlockSignals();
  rnicd::kubernetes::Plugin plugin(std::move(config), [] { kill(getpid(), SIGTERM); });
  plugin.logger().Info("rnicd-device-plugin", {{"version", RNICD_VERSION}});
  if (const absl::Status started = plugin.Start(); !started.ok()) {
    plugin.logger().Error("could not start", {{"error", std::string(started.message())}});
    return kCouldNotRun;
  }
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  plugin.logger().Info("stopping", {{"signal", signal}});
  plugin.Stop();
  if (const absl::Status failure = plugin.failure(); !failure.ok()) {
    plugin.logger().Error("the flags do not suit this node", {{"error", std::string(failure.message())}});
    return kBadFlags;
  }
  return EXIT_SUCCESS;
}

int Probe(const rnicd::kubernetes::Config& config) {
  const absl::Status status = rnicd::kubernetes::ProbePlugin(config);
  if (!status.ok()) {
    std::fprintf(stderr, "rnicd-device-plugin: %s\n", std::string(status.message()).c_str());
    return kCouldNotRun;
  }
  std::puts("the plugin serves");
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "offers registered memory of the node's rnicd to Kubernetes, as extended resources.\n"
      "Flags can also stand in a file: --flagfile=/etc/rnicd/device-plugin.flags");
  // Without this, --help shows only the flags defined in this file.
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) { return absl::StrContains(file, "client/kubernetes/"); };
  usage.version_string = [] { return std::string("rnicd-device-plugin ") + RNICD_VERSION + "\n"; };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  std::vector<std::string> errors;
  rnicd::kubernetes::Config config = rnicd::kubernetes::ConfigFromFlags(errors);
  for (size_t index = 1; index < rest.size(); ++index) {
    errors.push_back(std::string("unexpected argument: ") + rest[index]);
  }
  if (!errors.empty()) {
    for (const std::string& error : errors) {
      std::fprintf(stderr, "rnicd-device-plugin: %s\n", error.c_str());
    }
    return kBadFlags;
  }
  // Must run once, before any thread exists.
  curl_global_init(CURL_GLOBAL_DEFAULT);
  return config.probe ? Probe(config) : Run(std::move(config));
}
