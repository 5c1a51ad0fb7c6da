// rnicd_kubelet: the stand-in for the kubelet as a program, for scripts that run containers. Admits one pod as soon as
// its resource is offered, writes the plugin's response to a file, and runs until SIGTERM.
// Exit status: 0 after SIGTERM, 1 when the pod was not admitted, 2 for invalid flags.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
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
ABSL_FLAG(std::string, admit, "", "NAMESPACE/POD/CONTAINER:RESOURCE=COUNT");
ABSL_FLAG(std::string, own_pod, "", "NAMESPACE/POD of the plugin, which is listed from the beginning");
ABSL_FLAG(std::string, result, "", "file for environment and mounts of the container, as JSON");

namespace rnicd::test {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kOfferTimeout(120);

struct Wanted {
  Pod pod;
  std::string resource;
  size_t count = 0;
};

// False for a text of a different form.
bool Parse(const std::string& text, Wanted& wanted) {
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
  wanted.resource = amount[0];
  wanted.count = static_cast<size_t>(count);
  wanted.pod = {.uid = "3f1c1a52-6a3e-4f0a-9b1d-0c5a5e7f8a90",
                .namespace_name = names[0],
                .name = names[1],
                .containers = {{.name = names[2], .resources = {{wanted.resource, wanted.count}}}}};
  return true;
}

bool WaitForOffer(Kubelet& kubelet, const Wanted& wanted) {
  return Eventually(
      [&] {
        const std::optional<Kubelet::Amounts> amounts = kubelet.NodeStatus(wanted.resource);
        return amounts.has_value() && amounts->allocatable >= wanted.count;
      },
      kOfferTimeout);
}

// Renamed into place, so that a reader who waits for the file finds it complete.
bool Write(const RunOptions& container, const std::string& path) {
  Json mounts = Json::array();
  for (const v1beta1::Mount& mount : container.mounts) {
    mounts.push_back({{"container_path", mount.container_path()},
                      {"host_path", mount.host_path()},
                      {"read_only", mount.read_only()}});
  }
  std::ofstream(path + ".new") << Json{{"env", container.environment}, {"mounts", mounts}}.dump(2) << "\n";
  return std::rename((path + ".new").c_str(), path.c_str()) == 0;
}

// Empty on success.
std::string AdmitAndWrite(Kubelet& kubelet, const Wanted& wanted) {
  if (!WaitForOffer(kubelet, wanted)) {
    return "nobody offers enough of " + wanted.resource;
  }
  if (const absl::Status admitted = kubelet.Admit(wanted.pod); !admitted.ok()) {
    return std::string(admitted.message());
  }
  const absl::StatusOr<RunOptions> started = kubelet.StartContainer(wanted.pod.uid, wanted.pod.containers[0].name);
  if (!started.ok()) {
    return std::string(started.status().message());
  }
  return Write(*started, absl::GetFlag(FLAGS_result)) ? "" : "cannot write the result";
}

int Run(const Wanted& wanted) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Kubelet kubelet(
      {.folder = absl::GetFlag(FLAGS_folder), .pod_resources_socket = absl::GetFlag(FLAGS_pod_resources_socket)});
  kubelet.Start();
  const std::vector<std::string> own = absl::StrSplit(absl::GetFlag(FLAGS_own_pod), '/');
  if (own.size() == 2 && !kubelet.Admit({.uid = "plugin", .namespace_name = own[0], .name = own[1]}).ok()) {
    return 1;
  }
  if (const std::string problem = AdmitAndWrite(kubelet, wanted); !problem.empty()) {
    std::fprintf(stderr, "rnicd_kubelet: %s\n", problem.c_str());
    return 1;
  }
  std::puts("admitted");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}

}  // namespace
}  // namespace rnicd::test

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("a stand-in for the kubelet that admits one pod");
  absl::ParseCommandLine(argc, argv);
  rnicd::test::Wanted wanted;
  const bool named = !absl::GetFlag(FLAGS_folder).empty() && !absl::GetFlag(FLAGS_result).empty();
  if (!named || !rnicd::test::Parse(absl::GetFlag(FLAGS_admit), wanted)) {
    std::fprintf(stderr,
                 "rnicd_kubelet: --folder, --result and --admit=NAMESPACE/POD/CONTAINER:RESOURCE=COUNT are needed\n");
    return 2;
  }
  return rnicd::test::Run(wanted);
}
