// rnicd_kubelet: the stand-in for the kubelet as a program, for scripts that run containers. Admits one pod as soon as
// its resources are offered, writes the plugin's responses to a file, removes the pod on SIGUSR1, and runs until
// SIGTERM. Exit status: 0 after SIGTERM, 1 when the pod was not admitted, 2 for invalid flags.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/kubernetes/kubelet/kubelet.h"
#include "tests/support/process/wait.h"

ABSL_FLAG(std::string, folder, "", "for kubelet.sock and the plugins' sockets");
ABSL_FLAG(std::string, pod_resources_socket, "", "of the pod resources API");
ABSL_FLAG(std::vector<std::string>, admit, {}, "NAMESPACE/POD/CONTAINER:RESOURCE=COUNT of each container with devices");
ABSL_FLAG(std::string, own_pod, "", "NAMESPACE/POD of the plugin, which is listed from the beginning");
ABSL_FLAG(std::string, result, "", "file for environment and mounts of each container, as JSON");

namespace rnicd::test {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kOfferTimeout(120);

// Adds a container to the pod. False for a text of a different form, or of another pod.
bool Parse(const std::string& text, Pod& pod) {
  const std::vector<std::string> halves = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> names = absl::StrSplit(halves[0], '/');
  if (halves.size() != 2 || names.size() != 3) {
    return false;
  }
  const std::vector<std::string> amount = absl::StrSplit(halves[1], absl::MaxSplits('=', 1));
  int count = 0;
  if (amount.size() != 2 || !absl::SimpleAtoi(amount[1], &count) || count < 1) {
    return false;
  }
  if (!pod.containers.empty() && (names[0] != pod.namespace_name || names[1] != pod.name)) {
    return false;
  }
  pod.namespace_name = names[0];
  pod.name = names[1];
  pod.containers.push_back({.name = names[2], .resources = {{amount[0], static_cast<size_t>(count)}}});
  return true;
}

bool ParseAll(const std::vector<std::string>& texts, Pod& pod) {
  return !texts.empty() &&
         std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return Parse(text, pod); });
}

std::map<std::string, size_t> Total(const Pod& pod) {
  std::map<std::string, size_t> total;
  for (const Container& container : pod.containers) {
    for (const auto& [resource, count] : container.resources) {
      total[resource] += count;
    }
  }
  return total;
}

bool WaitForOffer(Kubelet& kubelet, const Pod& pod) {
  const std::map<std::string, size_t> total = Total(pod);
  return Eventually(
      [&] {
        return std::all_of(total.begin(), total.end(), [&](const auto& wanted) {
          const std::optional<Kubelet::Amounts> amounts = kubelet.NodeStatus(wanted.first);
          return amounts.has_value() && amounts->allocatable >= wanted.second;
        });
      },
      kOfferTimeout);
}

Json Described(const RunOptions& container) {
  Json mounts = Json::array();
  for (const v1beta1::Mount& mount : container.mounts) {
    mounts.push_back({{"container_path", mount.container_path()},
                      {"host_path", mount.host_path()},
                      {"read_only", mount.read_only()}});
  }
  return {{"env", container.environment}, {"mounts", mounts}};
}

// Renamed into place, so that a reader who waits for the file finds it complete.
bool Write(const Json& containers, const std::string& path) {
  std::ofstream(path + ".new") << containers.dump(2) << "\n";
  return std::rename((path + ".new").c_str(), path.c_str()) == 0;
}

// Empty on success.
std::string AdmitAndWrite(Kubelet& kubelet, const Pod& pod) {
  if (!WaitForOffer(kubelet, pod)) {
    return "nobody offers what the pod requests";
  }
  if (const absl::Status admitted = kubelet.Admit(pod); !admitted.ok()) {
    return std::string(admitted.message());
  }
  Json containers = Json::object();
  for (const Container& container : pod.containers) {
    const absl::StatusOr<RunOptions> started = kubelet.StartContainer(pod.uid, container.name);
    if (!started.ok()) {
      return std::string(started.status().message());
    }
    containers[container.name] = Described(*started);
  }
  return Write(containers, absl::GetFlag(FLAGS_result)) ? "" : "cannot write the result";
}

// The output may be a pipe, whose reader waits for the line.
void Say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

int Run(const Pod& pod) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Kubelet kubelet(
      {.folder = absl::GetFlag(FLAGS_folder), .pod_resources_socket = absl::GetFlag(FLAGS_pod_resources_socket)});
  kubelet.Start();
  const std::vector<std::string> own = absl::StrSplit(absl::GetFlag(FLAGS_own_pod), '/');
  if (own.size() == 2 && !kubelet.Admit({.uid = "plugin", .namespace_name = own[0], .name = own[1]}).ok()) {
    return 1;
  }
  if (const std::string problem = AdmitAndWrite(kubelet, pod); !problem.empty()) {
    std::fprintf(stderr, "rnicd_kubelet: %s\n", problem.c_str());
    return 1;
  }
  Say("admitted");
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) {
    kubelet.Remove(pod.uid);
    Say("removed");
  }
  return 0;
}

}  // namespace
}  // namespace rnicd::test

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("a stand-in for the kubelet that admits one pod");
  absl::ParseCommandLine(argc, argv);
  rnicd::test::Pod pod{.uid = "3f1c1a52-6a3e-4f0a-9b1d-0c5a5e7f8a90"};
  const bool named = !absl::GetFlag(FLAGS_folder).empty() && !absl::GetFlag(FLAGS_result).empty();
  if (!named || !rnicd::test::ParseAll(absl::GetFlag(FLAGS_admit), pod)) {
    std::fprintf(stderr,
                 "rnicd_kubelet: --folder, --result and --admit=NAMESPACE/POD/CONTAINER:RESOURCE=COUNT,... of one pod "
                 "are needed\n");
    return 2;
  }
  return rnicd::test::Run(pod);
}
