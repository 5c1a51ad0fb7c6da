#include "daemon/core/tenant/workload.h"

#include "daemon/core/session/race_fixture_test.h"
#include "daemon/core/tenant/tenant_directory.h"

namespace rnicd::core {
namespace {

constexpr char kMemory[] = "rnicd.io/memory-64mi";

ContainerFacts ContainerOf(const std::string& name, const std::vector<std::string>& devices,
                           const std::string& resource = kMemory) {
  return {.name = name, .devices = {{.resource = resource, .ids = devices}}};
}
PodFacts PodOf(const std::string& name, std::vector<ContainerFacts> containers, const std::string& uid = "") {
  return {.uid = uid, .namespace_name = "ns", .name = name, .labels = {}, .containers = std::move(containers)};
}
WorkloadName NameOf(const std::string& pod, const std::string& container) {
  return {.namespace_name = "ns", .pod = pod, .container = container};
}

TEST(DeviceHolders, AContainerWithAnyOfTheDevicesIsTheHolder) {
  const DeviceHolders holders({PodOf("a", {ContainerOf("init", {}), ContainerOf("main", {"m-0", "m-1"})}),
                               PodOf("b", {ContainerOf("c", {"m-2"})})});
  EXPECT_EQ(holders.HolderOf({.resource = kMemory, .ids = {"m-9", "m-1"}}), NameOf("a", "main"));
  EXPECT_EQ(holders.HolderOf({.resource = kMemory, .ids = {"m-2"}}), NameOf("b", "c"));
  EXPECT_FALSE(holders.HolderOf({.resource = kMemory, .ids = {"m-9"}}).known());
  EXPECT_FALSE(holders.HolderOf({.resource = kMemory, .ids = {}}).known());
  EXPECT_FALSE(DeviceHolders().HolderOf({.resource = kMemory, .ids = {"m-1"}}).known());
}

TEST(DeviceHolders, ADeviceOfAnotherResourceIsAnother) {
  const DeviceHolders holders({PodOf("a", {ContainerOf("main", {"m-0"}, "rnicd.io/memory-1gi")})});
  EXPECT_FALSE(holders.HolderOf({.resource = kMemory, .ids = {"m-0"}}).known());
}

TEST(DeviceHolders, OfSeveralHoldersTheFirstInTheOrderOfPodsCounts) {
  const DeviceHolders holders(
      {PodOf("a", {ContainerOf("main", {"m-0", "m-1"})}), PodOf("b", {ContainerOf("main", {"m-1", "m-2"})})});
  EXPECT_EQ(holders.HolderOf({.resource = kMemory, .ids = {"m-2", "m-1"}}), NameOf("a", "main"));
  EXPECT_EQ(holders.HolderOf({.resource = kMemory, .ids = {"m-1"}}), NameOf("a", "main")) << "held by both";
}

class WorkloadTest : public ::testing::Test {
 protected:
  // Creates a grant over one device; returns its tenant.
  std::shared_ptr<Tenant> Grant(const std::string& name, const std::string& device) {
    const auto devices = std::make_shared<DeviceSet>(DeviceSet{.resource = kMemory, .ids = {device}});
    const auto issued = directory_.CreateGrant({.name = name, .devices = devices});
    EXPECT_TRUE(issued.ok()) << issued.status();
    return directory_.TenantOf(CallerNumbered(1), issued->secret).value();
  }
  std::shared_ptr<Tenant> InPod(const std::string& rule) {
    Caller caller = CallerNumbered(1);
    caller.gid = rule == "pod" ? 1 : 2;
    caller.container.pod_uid = kPod;
    return directory_.TenantOf(caller, "").value();
  }

  KernelRandom random_;
  ManualClock clock_;
  std::shared_ptr<Ledger> node_ = std::make_shared<Ledger>(Limits{}, nullptr);
  TenantDirectory directory_{
      {.tenants = {{.name = "pod", .matches = {{.gid = 1}}, .sharing = Sharing::kEachPod, .limits = {}},
                   {.name = "one", .matches = {{.gid = 2}}, .sharing = Sharing::kOne, .limits = {}}},
       .default_tenant = "",
       .roles = {}},
      node_,
      random_,
      clock_};
};

TEST_F(WorkloadTest, AGrantsTenantLearnsItsHolderWheneverThatIsSaid) {
  const auto before = Grant("before", "m-0");
  EXPECT_EQ(before->workload()->name, WorkloadName{}) << "not known yet";
  EXPECT_EQ(before->workload()->devices->ids, std::vector<std::string>{"m-0"});
  directory_.SetPods({PodOf("a", {ContainerOf("main", {"m-0", "m-1"})})});
  EXPECT_EQ(before->workload()->name, NameOf("a", "main"));
  const auto after = Grant("after", "m-1");
  EXPECT_EQ(after->workload()->name, NameOf("a", "main")) << "the kubelet may be first";
  directory_.SetPods({PodOf("b", {ContainerOf("other", {"m-0"})})});
  EXPECT_EQ(before->workload()->name, NameOf("b", "other"));
  EXPECT_EQ(after->workload()->name, WorkloadName{});
  EXPECT_EQ(after->workload()->devices->ids, std::vector<std::string>{"m-1"}) << "what it covers stays";
}

TEST_F(WorkloadTest, AGrantWithoutDevicesIsNobodys) {
  directory_.SetPods({PodOf("a", {ContainerOf("main", {"m-0"})})});
  const auto issued = directory_.CreateGrant({.name = "plain"});
  const auto tenant = directory_.TenantOf(CallerNumbered(1), issued->secret).value();
  directory_.SetPods({PodOf("a", {ContainerOf("main", {"m-0"})})});
  EXPECT_FALSE(tenant->workload()->name.known());
  EXPECT_EQ(tenant->workload()->devices, nullptr);
}

TEST_F(WorkloadTest, ATenantThatIsAPodHasThePodsName) {
  const auto before = InPod("pod");
  EXPECT_FALSE(before->workload()->name.known());
  directory_.SetPods({PodOf("a", {}, kPod)});
  EXPECT_EQ(before->workload()->name, NameOf("a", ""));
  EXPECT_FALSE(InPod("one")->workload()->name.known()) << "of a rule that puts pods together";
  directory_.SetPods({});
  EXPECT_FALSE(before->workload()->name.known());
}

TEST_F(WorkloadTest, ATenantThatAppearsInAKnownPodIsNamedAtOnce) {
  directory_.SetPods({PodOf("a", {}, kPod)});
  EXPECT_EQ(InPod("pod")->workload()->name, NameOf("a", ""));
}

TEST_F(WorkloadTest, APodWithoutAUidIsNobodysPod) {
  directory_.SetPods({PodOf("a", {ContainerOf("main", {"m-0"})})});
  Caller outside = CallerNumbered(1);
  outside.gid = 1;
  EXPECT_FALSE(directory_.TenantOf(outside, "").value()->workload()->name.known());
  EXPECT_FALSE(InPod("pod")->workload()->name.known());
  EXPECT_EQ(directory_.Pods().size(), 1u);
}

// The latest report of pods applies to every grant, also to one that is made meanwhile.
TEST_F(WorkloadTest, NoGrantMissesThePodsReportedWhileItWasMade) {
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const std::string device = std::to_string(round);
    std::thread teller([&] { directory_.SetPods({PodOf("a", {ContainerOf("main", {device})})}); });
    const auto tenant = Grant(device, device);
    teller.join();
    EXPECT_EQ(tenant->workload()->name, NameOf("a", "main"));
  }
}

TEST_F(WorkloadTest, DecisionsOfATenantSayWhereItRuns) {
  World world;
  const auto devices = std::make_shared<DeviceSet>(DeviceSet{.resource = kMemory, .ids = {"m-0"}});
  const auto issued = world.tenants.CreateGrant({.name = "g", .lifetime = std::chrono::seconds(1), .devices = devices});
  world.tenants.SetPods({PodOf("a", {ContainerOf("main", {"m-0"})})});
  const auto session = world.registry.Open(CallerNumbered(1), "", issued->secret);
  ASSERT_TRUE(session.ok()) << session.status();
  world.clock.Advance(std::chrono::seconds(2));
  world.registry.EndExpired();
  ASSERT_TRUE(world.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
  std::vector<std::string> reported;
  for (const RecordedDecision& decision : world.observer.counts().decisions) {
    reported.push_back(decision.what);
    ASSERT_NE(decision.workload, nullptr) << decision.what;
    EXPECT_EQ(decision.workload->name, NameOf("a", "main")) << decision.what;
    EXPECT_EQ(decision.workload->devices, devices) << decision.what;
  }
  EXPECT_THAT(reported, ::testing::UnorderedElementsAre("grant.expire", "session.end"));
}

}  // namespace
}  // namespace rnicd::core
