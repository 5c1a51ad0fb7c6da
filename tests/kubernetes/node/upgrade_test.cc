// Pods that were admitted by a release without doors, and keep running.
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/secrets/secret.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/kubelet/device_book.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

constexpr size_t kOldUnits = 4;

class NodeUpgrade : public KubernetesNode {
 protected:
  // The pod "old" of an earlier plugin: its grant in the daemon and in the file, its allocation in the kubelet's
  // checkpoint.
  void LeavePodOfEarlierRelease() {
    v1::CreateGrantRequest request;
    request.set_name("memory-1mi/any-0000/3f2a91bc");
    request.mutable_limits()->set_pinned_bytes(kOldUnits * kUnitBytes);
    request.mutable_limits()->set_memory_bytes(kOldUnits * kUnitBytes);
    request.mutable_devices()->set_resource_name(kMemory);
    Allocation allocation;
    for (size_t unit = 0; unit < kOldUnits; ++unit) {
      request.mutable_devices()->add_device_ids(absl::StrCat("any-000", unit));
      allocation.device_ids.insert(absl::StrCat("any-000", unit));
    }
    const v1::CreateGrantResponse made = CreateGrant(daemon(), request).response;
    WriteGrants(made);
    (*allocation.answer.mutable_envs())["RNICD_GRANT"] = made.secret();
    (*allocation.answer.mutable_envs())["RNICD_SOCKET_DIR"] = "/run/rnicd";
    v1beta1::Mount& mount = *allocation.answer.add_mounts();
    mount.set_container_path("/run/rnicd");
    mount.set_host_path(daemon().socket_dir());
    DeviceBook book;
    book.Insert(UidOf("old"), "main", kMemory, std::move(allocation));
    kubelet().Stop();
    std::ofstream(home() + "/plugins/kubelet_internal_checkpoint") << book.ToCheckpoint();
    kubelet().Start();
  }
  // As that plugin wrote it.
  void WriteGrants(const v1::CreateGrantResponse& made) const {
    const SecretDigest digest = SecretDigest::Of(made.secret());
    const std::string path = home() + "/state/grants.json";
    std::ofstream(path) << absl::StrCat(
        R"({"version": 1, "grants": [{"grant_id": ")", made.grant_id(), R"(", "secret_sha256": ")",
        absl::BytesToHexString(std::string(digest.bytes().begin(), digest.bytes().end())),
        R"(", "name": "memory-1mi/any-0000/3f2a91bc", "resource": "rnicd.io/memory-1mi",
            "device_ids": ["any-0000", "any-0001", "any-0002", "any-0003"],
            "limits": {"pinned_bytes": 4194304, "memory_bytes": 4194304}, "made_ms": 1800000000123,
            "pod": "team/old", "pod_uid": "uid-old", "container": "main", "suspended": false}]})");
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  static uint64_t Inode(const std::string& path) {
    struct stat facts = {};
    EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
    return facts.st_ino;
  }
};

TEST_F(NodeUpgrade, ARunningPodKeepsItsSecretAndTheNextOneGetsADoor) {
  LeavePodOfEarlierRelease();
  // The kubelet lists the pod after the plugin has started.
  const std::vector<std::string> flags = {"--revoke_grace_ms=3600000"};
  StartPlugin(flags);
  const RunOptions old_pod = RunPod("old", kOldUnits);
  const RunOptions new_pod = RunPod("new", 2);
  const std::string door = new_pod.mounts.at(0).host_path();
  const uint64_t inode = Inode(door);
  for (int restart = 0; restart < 2; ++restart) {
    ASSERT_TRUE(Eventually([&] { return Grants().size() == 2; })) << plugin().errors().Text();
    EXPECT_EQ(old_pod.environment.count("RNICD_GRANT"), 1u);
    EXPECT_EQ(new_pod.environment.count("RNICD_GRANT"), 0u);
    const auto old_process = Hold(old_pod, kOldUnits * kUnitBytes);
    const auto new_process = Hold(new_pod, 2 * kUnitBytes);
    EXPECT_EQ(Pinned(), (kOldUnits + 2) * kUnitBytes) << "each within its own grant";
    EXPECT_EQ(Inode(door), inode) << "the mount of a running pod is valid";
    for (const v1::GrantInfo& grant : Grants()) {
      EXPECT_EQ(grant.door().socket_dir(), grant.limits().pinned_bytes() == 2 * kUnitBytes ? door : "");
    }
    KillPlugin();
    daemon().KillHard();
    StartDaemon();
    StartPlugin(flags);
  }
  EXPECT_TRUE(kubelet().StartContainer(UidOf("old"), "main").ok()) << plugin().errors().Text();
}

}  // namespace
}  // namespace rnicd::test
