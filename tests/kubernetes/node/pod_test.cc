// Grants that are bound to their pods, and processes that reach the door of another pod.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;

// A container's control group in a pod, as a kubelet makes it. Removed at the end, when its processes must be gone.
class PodGroup {
 public:
  explicit PodGroup(const std::string& pod_uid) {
    for (const char* hierarchy : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/systemd"}) {
      const std::string folder = std::string(hierarchy) + "/kubepods/pod" + pod_uid + "/" + std::string(64, 'a');
      std::error_code failure;
      if (access((std::string(hierarchy) + "/cgroup.procs").c_str(), W_OK) == 0 &&
          std::filesystem::create_directories(folder, failure)) {
        folder_ = folder;
        return;
      }
    }
  }
  ~PodGroup() {
    std::error_code ignored;
    // The folder of all pods stays while others have pods in it.
    for (std::filesystem::path path = folder_; !path.empty() && path.filename() != "cgroup";
         path = path.parent_path()) {
      if (!std::filesystem::remove(path, ignored)) {
        return;
      }
    }
  }
  PodGroup(const PodGroup&) = delete;
  PodGroup& operator=(const PodGroup&) = delete;

  // Empty where this user may make none. The daemon then sees no process in a pod, and binds nothing.
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

class NodePods : public KubernetesNode {
 protected:
  // For names of one character; others in each test process.
  std::string UidOf(const std::string& name) const final {
    return absl::StrCat("2c48913c-b29f-11e7-935", name, "-", absl::Hex(getpid(), absl::kZeroPad12));
  }
  // UID of the pod that the grant of this many units is bound to.
  std::string BoundTo(uint64_t units) {
    for (const v1::GrantInfo& grant : Grants()) {
      if (grant.limits().pinned_bytes() == units * kUnitBytes) {
        return grant.pod_uid();
      }
    }
    return "no such grant";
  }
  // The UID to be expected of a grant that is bound to the pod `name`.
  std::string WhereShown(const std::string& name) const { return group_.folder().empty() ? "" : UidOf(name); }

  const PodGroup group_{UidOf("a")};
  const PodGroup other_group_{UidOf("b")};
};

TEST_F(NodePods, ADoorAdmitsItsPodOnlyFromTheStartOfItsContainer) {
  StartPlugin();
  const auto other = Hold(RunPod("b", 1), kUnitBytes, nullptr, other_group_.folder());
  const RunOptions container = RunPod("a", 4);
  EXPECT_EQ(BoundTo(4), WhereShown("a"));
  for (const std::string& thief : {std::string(), other_group_.folder()}) {
    std::string refusal;
    const auto held = Hold(container, kUnitBytes, &refusal, thief);
    EXPECT_EQ(held == nullptr, !group_.folder().empty());
    EXPECT_THAT(refusal, HasSubstr(group_.folder().empty() ? "" : "GRANT_REFUSED"));
  }
  EXPECT_NE(Hold(container, kUnitBytes, nullptr, group_.folder()), nullptr) << "a process of the pod";
}

// That daemon has not seen a pod yet.
TEST_F(NodePods, AThiefLosesItsSessionWhenThePodIsBackAtARestartedDaemon) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  daemon().KillHard();
  StartDaemon();
  ASSERT_TRUE(Eventually([&] { return Grants().size() == 1; })) << plugin().errors().Text();
  const auto thief = Hold(container, 2 * kUnitBytes);
  ASSERT_NE(thief, nullptr);
  const auto workload = Hold(container, kUnitBytes, nullptr, group_.folder());
  EXPECT_TRUE(Eventually([&] { return BoundTo(4) == WhereShown("a"); })) << plugin().errors().Text();
  const uint64_t units_left = group_.folder().empty() ? 3 : 1;
  EXPECT_TRUE(Eventually([&] { return Pinned() == units_left * kUnitBytes; })) << "of the workload";
}

}  // namespace
}  // namespace rnicd::test
