#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rnicd/v1/admin_service.pb.h"
#include "tests/kubernetes/kubelet/kubelet.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

inline constexpr char kMemory[] = "rnicd.io/memory-1mi";
inline constexpr uint64_t kUnitBytes = 1 << 20;
// Number of units of the node.
inline constexpr size_t kUnits = 16;

// A node with a running daemon and kubelet; StartPlugin starts the plugin. Intervals are short: the plugin asks for
// holders every tenth of a second, and a grant without a holder lives for a second.
class KubernetesNode : public testing::Test {
 protected:
  // The user of daemon and plugin; absent: as this process. When given, the policy makes that user a device plugin on
  // the operators' socket.
  explicit KubernetesNode(std::optional<uid_t> uid = std::nullopt);

  void StartDaemon();
  // Returns when the kubelet knows the node's devices, all healthy. `flags` come last.
  // `stderr_file` as in ChildOptions.
  void StartPlugin(const std::vector<std::string>& flags = {}, std::optional<int> stderr_file = std::nullopt);
  void LaunchPlugin(const std::vector<std::string>& flags = {}, std::optional<int> stderr_file = std::nullopt);
  void KillPlugin();

  // Admits a pod "team/NAME" with one container, "main", and starts that.
  RunOptions RunPod(const std::string& name, size_t units);
  // None of Kubernetes' forms, so grants are bound to no pod, and this process may use their doors.
  virtual std::string UidOf(const std::string& name) const;
  // Starts a process of the container that registers that much memory and holds it until it is killed. Null when it is
  // refused; its last output is then in `refusal`. `group`: folder of its control group; empty: as this process.
  // A container of an earlier release has a secret in RNICD_GRANT.
  std::unique_ptr<ChildProcess> Hold(const RunOptions& container, uint64_t bytes, std::string* refusal = nullptr,
                                     const std::string& group = "");

  bool KubeletSees(size_t capacity, size_t allocatable);
  // Number of times that the daemon has been told of the pods since it started.
  uint64_t PodReports();
  // Returns when the daemon has been told of the pods anew, from an observation that began after this call.
  bool PodsAreReported();
  // Returns when the plugin has asked the kubelet for its pods that often after this call; it has then done what it
  // does about all of those observations but the last.
  bool PodsAreAsked(size_t times);
  // Returns when it has asked so often that a grant that had no holder in between would have been revoked.
  bool GraceIsOver();
  // The kubelet restarts, and all devices are free for it, although their pods run.
  void RestartKubeletWithoutCheckpoint();
  // Bytes that the daemon has pinned for all tenants.
  uint64_t Pinned();
  std::vector<v1::GrantInfo> Grants();
  // Content of a file below home(); empty when there is none.
  std::string FileText(const std::string& name) const;

  DaemonProcess& daemon() { return *daemon_; }
  Kubelet& kubelet() { return kubelet_; }
  ChildProcess& plugin() { return *plugin_; }
  const std::string& home() const { return home_.path(); }

 private:
  void ChangeOwnerOfFolders(uid_t uid) const;

  const std::optional<uid_t> uid_;
  const TempDir home_;
  std::unique_ptr<DaemonProcess> daemon_;
  Kubelet kubelet_;
  std::unique_ptr<ChildProcess> plugin_;
};

}  // namespace rnicd::test
