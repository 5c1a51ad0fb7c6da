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
#include "tests/support/child_process.h"
#include "tests/support/daemon_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace rnicd::test {

inline constexpr char kMemory[] = "rnicd.io/memory-1mi";
inline constexpr uint64_t kUnitBytes = 1 << 20;
// So many units the node has.
inline constexpr size_t kUnits = 16;

// A node with a running daemon and kubelet; the plugin is started by StartPlugin. Time passes quickly: holders are
// asked for every tenth of a second, and a grant that nobody holds lives on for a second.
class KubernetesNode : public testing::Test {
 protected:
  // The user of daemon and plugin; absent: as this process. One that is given is a device plugin on the operators'
  // socket, by the policy.
  explicit KubernetesNode(std::optional<uid_t> uid = std::nullopt);

  void StartDaemon();
  // Returns when the kubelet knows the node's devices, all healthy. `flags` come last.
  void StartPlugin(const std::vector<std::string>& flags = {});
  void LaunchPlugin(const std::vector<std::string>& flags = {});

  // Admits a pod "team/NAME" with one container, "main", and starts that.
  RunOptions RunPod(const std::string& name, size_t units);
  static std::string UidOf(const std::string& name);
  // A process of the container that registers so much memory and holds it until it is killed. Nothing when it is
  // refused; its last words are then in `refusal`.
  std::unique_ptr<ChildProcess> Hold(const RunOptions& container, uint64_t bytes, std::string* refusal = nullptr);

  bool KubeletSees(size_t capacity, size_t allocatable);
  // What the daemon has pinned for everybody.
  uint64_t Pinned();
  std::vector<v1::GrantInfo> Grants();
  // Of a file below home(); empty when there is none.
  std::string FileText(const std::string& name) const;

  DaemonProcess& daemon() { return *daemon_; }
  Kubelet& kubelet() { return kubelet_; }
  ChildProcess& plugin() { return *plugin_; }
  const std::string& home() const { return home_.path(); }

 private:
  void GiveAwayFolders(uid_t uid) const;

  const std::optional<uid_t> uid_;
  const TempDir home_;
  std::unique_ptr<DaemonProcess> daemon_;
  Kubelet kubelet_;
  std::unique_ptr<ChildProcess> plugin_;
};

}  // namespace rnicd::test
