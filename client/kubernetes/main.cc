// rnicd-device-plugin: offers registered memory of the node's rnicd to Kubernetes, as extended resources.
// Exit status: 0 after SIGTERM or SIGINT, and for --probe when the plugin serves; 1 when it could not start or stop,
// and when it does not serve; 2 for flags that do not exist, have invalid values, or do not suit the node.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/flags/command_line.h"
#include "base/system/abandonable_thread.h"
#include "base/system/process_start.h"
#include "client/kubernetes/config.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "client/kubernetes/plugin.h"
#include "curl/curl.h"

namespace {

constexpr int kCouldNotRun = 1;
constexpr int kBadFlags = 2;
// Longer than a call to the API server may take, and shorter than what Kubernetes waits before it kills.
constexpr std::chrono::seconds kStopTimeout{12};

// Blocks the signals before the first thread is created, so that all threads inherit the mask and only sigwait receives
// them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Run(rnicd::kubernetes::Config config) {
  const sigset_t signals = BlockSignals();
  // Read after the plugin has stopped, and with it the thread that sets it.
  absl::Status failure;
  rnicd::kubernetes::Plugin plugin(std::move(config), [&failure](const absl::Status& why) {
    failure = why;
    kill(getpid(), SIGTERM);
  });
  plugin.logger().Info("rnicd-device-plugin", {{"version", RNICD_VERSION}});
  if (const absl::Status started = plugin.Start(); !started.ok()) {
    plugin.logger().Error("could not start", {{"error", std::string(started.message())}});
    return kCouldNotRun;
  }
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  plugin.logger().Info("stopping", {{"signal", signal}});
  rnicd::AbandonableThread stop([&plugin] { plugin.Stop(); });
  if (!stop.EndBy(std::chrono::steady_clock::now() + kStopTimeout)) {
    // A disk that hangs cannot be waited for. The grants are those of the file, as after a crash.
    plugin.logger().Error("did not stop in time");
    plugin.logger().FlushUntil(std::chrono::steady_clock::now() + rnicd::log::kLastLines);
    std::_Exit(kCouldNotRun);
  }
  if (!failure.ok()) {
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
  rnicd::PrepareProcess();
  std::vector<std::string> errors =
      rnicd::ReadFlags(argc, argv,
                       {.purpose = "offers registered memory of the node's rnicd to Kubernetes, as extended resources.",
                        .version = "rnicd-device-plugin " RNICD_VERSION,
                        .folder = "client/kubernetes/"});
  rnicd::kubernetes::Config config = rnicd::kubernetes::ConfigFromFlags(errors);
  if (const absl::Status usable = rnicd::kubernetes::CheckGrpcPoller(); !usable.ok()) {
    errors.emplace_back(usable.message());
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
