#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"
#include "tests/support/metrics_page.h"

namespace rnicd::test {
namespace {

constexpr int kReconcileIntervalMs = 100;
constexpr int kGraceMs = 1000;

}  // namespace

KubernetesNode::KubernetesNode(std::optional<uid_t> uid)
    : uid_(uid), kubelet_({.folder = home_.path() + "/plugins", .pod_resources_socket = home_.path() + "/pr.sock"}) {
  mkdir((home_.path() + "/plugins").c_str(), 0750);
  mkdir((home_.path() + "/state").c_str(), 0700);
  kubelet_.Start();
  if (uid_.has_value()) {
    ChangeOwnerOfFolders(*uid_);
  }
  StartDaemon();
}

void KubernetesNode::ChangeOwnerOfFolders(uid_t uid) const {
  home_.GiveTo(uid);
  for (const char* name : {"/plugins", "/state", "/plugins/kubelet.sock", "/pr.sock"}) {
    EXPECT_EQ(chown((home() + name).c_str(), uid, static_cast<gid_t>(-1)), 0) << name;
  }
  std::ofstream(home() + "/policy.textproto")
      << "role { match { uid: " << uid << " } role: CALLER_ROLE_DEVICE_PLUGIN }\n";
}

void KubernetesNode::StartDaemon() {
  DaemonOptions options{.flags = {"--provider=soft", "--max_pinned_bytes=" + std::to_string(kUnits * kUnitBytes),
                                  kMetricsOnFreePort, "--audit_log=" + home() + "/audit.jsonl"},
                        .uid = uid_};
  if (uid_.has_value()) {
    options.flags.push_back("--policy_file=" + home() + "/policy.textproto");
  }
  if (daemon_ != nullptr) {
    options.directory = daemon_->directory();
  }
  auto daemon = DaemonProcess::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
}

void KubernetesNode::LaunchPlugin(const std::vector<std::string>& flags, std::optional<int> stderr_file) {
  std::vector<std::string> command = {ExecutableForEveryone(DEVICE_PLUGIN_PATH),
                                      absl::StrCat("--admin_socket_dir=", daemon_->admin_dir()),
                                      absl::StrCat("--door_dir=", daemon_->socket_dir(), "-doors"),
                                      absl::StrCat("--kubelet_dir=", home(), "/plugins"),
                                      absl::StrCat("--pod_resources_socket=", home(), "/pr.sock"),
                                      absl::StrCat("--state_dir=", home(), "/state"),
                                      absl::StrCat("--resources=", kMemory, "=1MiB"),
                                      absl::StrCat("--reconcile_interval_ms=", kReconcileIntervalMs),
                                      absl::StrCat("--revoke_grace_ms=", kGraceMs),
                                      "--daemon_timeout_ms=60000"};
  command.insert(command.end(), flags.begin(), flags.end());
  auto plugin = ChildProcess::Start({.command = std::move(command), .uid = uid_, .stderr_file = stderr_file});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  plugin_ = *std::move(plugin);
}

void KubernetesNode::StartPlugin(const std::vector<std::string>& flags, std::optional<int> stderr_file) {
  LaunchPlugin(flags, stderr_file);
  ASSERT_TRUE(KubeletSees(kUnits, kUnits)) << plugin_->errors().Text();
}

void KubernetesNode::KillPlugin() {
  plugin_->Signal(SIGKILL);
  ASSERT_TRUE(plugin_->WaitForEnd().has_value());
}

std::string KubernetesNode::UidOf(const std::string& name) const { return "uid-" + name; }

RunOptions KubernetesNode::RunPod(const std::string& name, size_t units) {
  const absl::Status admitted = kubelet_.Admit({.uid = UidOf(name),
                                                .namespace_name = "team",
                                                .name = name,
                                                .containers = {{.name = "main", .resources = {{kMemory, units}}}}});
  EXPECT_TRUE(admitted.ok()) << admitted << "\n" << plugin_->errors().Text();
  absl::StatusOr<RunOptions> started = kubelet_.StartContainer(UidOf(name), "main");
  EXPECT_TRUE(started.ok()) << started.status() << "\n" << plugin_->errors().Text();
  return started.ok() ? *std::move(started) : RunOptions();
}

std::unique_ptr<ChildProcess> KubernetesNode::Hold(const RunOptions& container, uint64_t bytes, std::string* refusal,
                                                   const std::string& group) {
  std::vector<std::string> command = {RNICCTL_PATH, "register", "--size=" + std::to_string(bytes), "--hold=forever",
                                      "--socket-dir=" + container.mounts.at(0).host_path()};
  if (const auto secret = container.environment.find("RNICD_GRANT"); secret != container.environment.end()) {
    command.push_back("--grant=" + secret->second);
  }
  if (!group.empty()) {
    command.insert(command.begin(), {"/bin/sh", "-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"", group});
  }
  auto process = ChildProcess::Start({.command = std::move(command)});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return nullptr;
  }
  if ((*process)->output().WaitFor("REMOTE TOKEN", kTimeout)) {
    return *std::move(process);
  }
  EXPECT_TRUE((*process)->WaitForEnd().has_value());
  (*process)->errors().WaitForEnd(kTimeout);
  if (refusal != nullptr) {
    *refusal = (*process)->errors().Text();
  } else {
    ADD_FAILURE() << (*process)->errors().Text();
  }
  return nullptr;
}

bool KubernetesNode::KubeletSees(size_t capacity, size_t allocatable) {
  return Eventually([&] { return kubelet_.NodeStatus(kMemory) == Kubelet::Amounts{capacity, allocatable}; });
}

uint64_t KubernetesNode::PodReports() {
  return static_cast<uint64_t>(MetricsPage(HttpGet(AdminStatus(*daemon_).metrics_address(), "/metrics").body)
                                   .Sum("rnicd_rpcs_total{code=\"OK\",method=\"AdminService.SetPods\"}"));
}

// The first of the two reports may be of an older observation.
bool KubernetesNode::PodsAreReported() {
  const uint64_t before = PodReports();
  return Eventually([&] { return PodReports() >= before + 2; });
}

bool KubernetesNode::PodsAreAsked(size_t times) {
  const size_t before = kubelet_.pod_lists();
  return Eventually([&] { return kubelet_.pod_lists() >= before + times; });
}

// The plugin never asks sooner than after an interval. One observation more begins the grace, and one is under way.
bool KubernetesNode::GraceIsOver() { return PodsAreAsked(kGraceMs / kReconcileIntervalMs + 3); }

void KubernetesNode::RestartKubeletWithoutCheckpoint() {
  kubelet_.Stop();
  kubelet_.LoseCheckpoint();
  kubelet_.Start();
  EXPECT_TRUE(KubeletSees(kUnits, kUnits)) << plugin_->errors().Text();
}

uint64_t KubernetesNode::Pinned() { return Used(AdminStatus(*daemon_), "pinned_bytes"); }

std::vector<v1::GrantInfo> KubernetesNode::Grants() { return AdminGrants(*daemon_); }

std::string KubernetesNode::FileText(const std::string& name) const {
  std::ifstream file(home() + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace rnicd::test
