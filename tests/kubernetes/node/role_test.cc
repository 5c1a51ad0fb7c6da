// The plugin needs only the rights of the device plugin role.
#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

class NodeWithoutPrivilege : public KubernetesNode {
 protected:
  NodeWithoutPrivilege() : KubernetesNode(WorkloadUid()) {}
};

// Daemon and plugin run as one user without capabilities, and the policy gives that user the role of a device plugin.
TEST_F(NodeWithoutPrivilege, TheRoleOfADevicePluginIsEnough) {
  StartPlugin();
  const RunOptions container = RunPod("a", 2);
  const auto process = Hold(container, 2 * kUnitBytes);
  EXPECT_EQ(Pinned(), 2 * kUnitBytes);
  EXPECT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; })) << plugin().errors().Text();
  kubelet().Remove(UidOf("a"));
  EXPECT_TRUE(Eventually([&] { return Grants().empty(); })) << plugin().errors().Text();
  EXPECT_EQ(plugin().errors().Text().find("METHOD_NOT_PERMITTED"), std::string::npos) << plugin().errors().Text();
}

}  // namespace
}  // namespace rnicd::test
