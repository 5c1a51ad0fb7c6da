// Allocations of pods, and their limits.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/kubelet/device_book.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"
#include "tests/support/metrics_page.h"

namespace rnicd::test {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class NodeAllocation : public KubernetesNode {};

TEST_F(NodeAllocation, APodGetsADoorAndNothingElse) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  EXPECT_THAT(container.environment, ElementsAre(Pair("RNICD_SOCKET_DIR", "/run/rnicd")));
  ASSERT_THAT(container.mounts, SizeIs(1));
  EXPECT_EQ(container.mounts[0].container_path(), "/run/rnicd");
  EXPECT_EQ(container.mounts[0].host_path(), Grants().at(0).door().socket_dir());
  EXPECT_TRUE(container.mounts[0].read_only());
}

TEST_F(NodeAllocation, TheGrantIsForAsMuchAsThePodAskedForAndNoMore) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  const auto all = Hold(container, 4 * kUnitBytes);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(Pinned(), 4 * kUnitBytes);
  std::string refusal;
  EXPECT_EQ(Hold(container, 4096, &refusal), nullptr) << "a second process of the container shares the limit";
  EXPECT_THAT(refusal, HasSubstr("QUOTA_MEMORY_BYTES"));
}

// The kubelet names the devices in no order.
TEST_F(NodeAllocation, ATenantIsNamedAfterItsFirstUnit) {
  StartPlugin();
  RunPod("a", 4);
  EXPECT_THAT(Grants().at(0).tenant(), HasSubstr("grant/memory-1mi/any-0000/"));
}

TEST_F(NodeAllocation, AContainerWithTwoKindsOfUnitsIsRefusedWithAReason) {
  constexpr char kLarge[] = "rnicd.io/memory-2mi";
  LaunchPlugin({absl::StrCat("--resources=", kMemory, "=1MiB,", kLarge, "=2MiB")});
  ASSERT_TRUE(KubeletSees(8, 8)) << plugin().errors().Text();
  ASSERT_TRUE(Eventually([&] { return kubelet().NodeStatus(kLarge) == Kubelet::Amounts{4, 4}; }));
  const auto pod = [&](const std::string& name, std::vector<Container> containers) {
    return Pod{.uid = UidOf(name), .namespace_name = "team", .name = name, .containers = std::move(containers)};
  };
  ASSERT_TRUE(kubelet().Admit(pod("both", {{.name = "main", .resources = {{kMemory, 1}, {kLarge, 1}}}})).ok());
  EXPECT_THAT(std::string(kubelet().StartContainer(UidOf("both"), "main").status().message()),
              HasSubstr("the container requests rnicd.io/memory-1mi and rnicd.io/memory-2mi, but can have one kind"));
  ASSERT_TRUE(kubelet()
                  .Admit(pod("each", {{.name = "small", .resources = {{kMemory, 1}}},
                                      {.name = "large", .resources = {{kLarge, 1}}}}))
                  .ok());
  for (const char* container : {"small", "large"}) {
    const auto started = kubelet().StartContainer(UidOf("each"), container);
    EXPECT_TRUE(started.ok()) << started.status();
  }
}

TEST_F(NodeAllocation, TwoPodsHaveGrantsOfTheirOwn) {
  StartPlugin();
  const RunOptions first = RunPod("a", 2);
  const RunOptions second = RunPod("b", 3);
  EXPECT_NE(first.mounts.at(0).host_path(), second.mounts.at(0).host_path());
  const auto one = Hold(first, 2 * kUnitBytes);
  const auto other = Hold(second, 3 * kUnitBytes);
  EXPECT_EQ(Pinned(), 5 * kUnitBytes);
}

TEST_F(NodeAllocation, PagesOfADeadContainerAreBackAtOnceAndItsGrantServesTheNextStart) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  auto process = Hold(container, 4 * kUnitBytes);
  ASSERT_NE(process, nullptr);
  process->Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return Pinned() == 0; }));
  const auto again = kubelet().StartContainer(UidOf("a"), "main");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->mounts.at(0).host_path(), container.mounts.at(0).host_path());
  EXPECT_NE(Hold(*again, 4 * kUnitBytes), nullptr);
}

// Tenants are named after their grants; the kubelet provides their pods.
TEST_F(NodeAllocation, TheTenantIsJoinedToItsContainerInListsMetricsAndTheAuditLog) {
  StartPlugin();
  const RunOptions container = RunPod("a", 2);
  const auto named = [&] {
    const std::vector<v1::GrantInfo> grants = Grants();
    return grants.size() == 1 && grants[0].workload().pod_name() == "a";
  };
  ASSERT_TRUE(Eventually(named)) << plugin().errors().Text();
  const v1::GrantInfo grant = Grants()[0];
  EXPECT_EQ(grant.workload().namespace_(), "team");
  EXPECT_EQ(grant.workload().container(), "main");
  EXPECT_EQ(grant.devices().resource_name(), kMemory);
  EXPECT_THAT(grant.devices().device_ids(), UnorderedElementsAre("any-0000", "any-0001"));

  const auto process = Hold(container, kUnitBytes);
  const auto tenant = AdminTenant(daemon(), grant.tenant());
  ASSERT_TRUE(tenant.has_value());
  EXPECT_EQ(tenant->workload().pod_name(), "a");

  const std::string page = HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body;
  EXPECT_THAT(page, HasSubstr("rnicd_tenant_info{tenant=\"" + grant.tenant() +
                              "\",namespace=\"team\",pod=\"a\",container=\"main\"} 1"));
  EXPECT_THAT(page, HasSubstr("rnicd_pinned_bytes{tenant=\"" + grant.tenant() + "\"} 1048576"));

  const auto written = [&] {
    const std::string text = FileText("/audit.jsonl");
    return text.find("\"what\":\"MemoryService.RegisterMr\"") != std::string::npos &&
           text.find("\"namespace\":\"team\",\"pod\":\"a\",\"container\":\"main\"") != std::string::npos;
  };
  EXPECT_TRUE(Eventually(written));
}

TEST_F(NodeAllocation, OtherLimitsOfGrantsAreTheOperators) {
  StartPlugin({"--grant_limits=sessions=1", "--registered_times=2"});
  const RunOptions container = RunPod("a", 3);
  const std::vector<v1::GrantInfo> grants = Grants();
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].limits().pinned_bytes(), 3 * kUnitBytes);
  EXPECT_EQ(grants[0].limits().memory_bytes(), 3 * kUnitBytes);
  EXPECT_EQ(grants[0].limits().registered_bytes(), 6 * kUnitBytes);
  EXPECT_EQ(grants[0].limits().sessions(), 1u);
  const auto first = Hold(container, kUnitBytes);
  std::string refusal;
  EXPECT_EQ(Hold(container, kUnitBytes, &refusal), nullptr);
  EXPECT_THAT(refusal, HasSubstr("QUOTA_SESSIONS"));
}

// Not to the kubelet, nor to any file or log on the way.
TEST_F(NodeAllocation, NoContainerGetsASecret) {
  StartPlugin({"--log_level=debug"});
  RunPod("a", 1);
  const std::string checkpoint = FileText("/plugins/kubelet_internal_checkpoint");
  const Allocation allocation = DeviceBook::FromCheckpoint(checkpoint).Of(UidOf("a"), "main").at(kMemory);
  for (const std::string& text : {allocation.answer.ShortDebugString(), checkpoint, FileText("/state/grants.json"),
                                  FileText("/audit.jsonl"), plugin().errors().Text()}) {
    EXPECT_NE(text, "");
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("rnicd-grant-"), HasSubstr("RNICD_GRANT"))));
  }
}

}  // namespace
}  // namespace rnicd::test
