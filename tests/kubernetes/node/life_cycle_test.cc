// Restarts and exits of the kubelet, the plugin, the daemon, and pods.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeLifeCycle : public KubernetesNode {
 protected:
  static bool DoorExists(const RunOptions& container) {
    return std::filesystem::exists(container.mounts.at(0).host_path());
  }
  // Exit status of the probe.
  int Probe() {
    auto process =
        ChildProcess::Start({.command = {DEVICE_PLUGIN_PATH, "--probe", "--kubelet_dir=" + home() + "/plugins",
                                         absl::StrCat("--resources=", kMemory, "=1MiB")}});
    return process.ok() ? (*process)->WaitForEnd().value_or(ProcessEnd()).exit_code : -1;
  }
};

TEST_F(NodeLifeCycle, ARestartOfTheKubeletLeavesPodsAndTheirGrantsAlone) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  const auto process = Hold(container, kUnitBytes);
  const auto held = kubelet().Held(UidOf("a"), "main", kMemory);
  kubelet().Stop();
  kubelet().Start();
  EXPECT_TRUE(KubeletSees(kUnits, kUnits));
  EXPECT_EQ(kubelet().Held(UidOf("a"), "main", kMemory), held);
  EXPECT_EQ(Pinned(), kUnitBytes);
  EXPECT_THAT(Grants(), SizeIs(1));
  EXPECT_NE(Hold(container, kUnitBytes), nullptr) << "its door is open as before";
}

TEST_F(NodeLifeCycle, ARestartOfThePluginKeepsTheIds) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  const auto before = kubelet().Held(UidOf("a"), "main", kMemory);
  KillPlugin();
  ASSERT_TRUE(KubeletSees(kUnits, 0)) << "the kubelet notices";
  StartPlugin();
  EXPECT_THAT(Grants(), SizeIs(1));
  EXPECT_EQ(kubelet().Held(UidOf("a"), "main", kMemory), before);
  EXPECT_NE(Hold(container, 4 * kUnitBytes), nullptr);
  kubelet().Remove(UidOf("a"));
  EXPECT_TRUE(Eventually([&] { return Grants().empty(); })) << "the new plugin ends what the old one began";
}

TEST_F(NodeLifeCycle, AKilledDaemonsSuccessorKnowsTheGrantsOfRunningPods) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  ASSERT_NE(Hold(container, kUnitBytes), nullptr);
  daemon().KillHard();
  StartDaemon();
  EXPECT_TRUE(Eventually([&] { return Grants().size() == 1; })) << plugin().errors().Text();
  const auto process = Hold(container, 4 * kUnitBytes);
  ASSERT_NE(process, nullptr) << "the door that the pod was given is open again";
  std::string refusal;
  EXPECT_EQ(Hold(container, 4096, &refusal), nullptr) << "and so is its limit";
  EXPECT_TRUE(KubeletSees(kUnits, kUnits));
}

// As deploy/kubernetes/examples/workload.yaml: without the option it would end, and its pod would back off.
TEST_F(NodeLifeCycle, AWorkloadThatReconnectsIsBackWithTheNextDaemon) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  auto workload =
      ChildProcess::Start({.command = {RNICCTL_PATH, "register", "--size=4MiB", "--hold=forever", "--reconnect",
                                       "--socket-dir=" + container.mounts.at(0).host_path()}});
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_TRUE(Eventually([&] { return Pinned() == 4 * kUnitBytes; })) << (*workload)->errors().Text();
  daemon().KillHard();
  StartDaemon();
  EXPECT_TRUE(Eventually([&] { return Pinned() == 4 * kUnitBytes; })) << (*workload)->errors().Text();
  (*workload)->Signal(SIGTERM);
  EXPECT_EQ((*workload)->WaitForEnd().value_or(ProcessEnd()).exit_code, 0);
}

// After a restart of the node all three start at once, and a container may be started before the plugin has polled.
TEST_F(NodeLifeCycle, ARestartOfTheWholeNodeKeepsWhatPodsWereGiven) {
  StartPlugin();
  const RunOptions container = RunPod("a", 2);
  KillPlugin();
  daemon().KillHard();
  kubelet().Stop();
  kubelet().Start();
  StartDaemon();
  StartPlugin();
  const auto again = kubelet().StartContainer(UidOf("a"), "main");
  ASSERT_TRUE(again.ok()) << again.status() << plugin().errors().Text();
  EXPECT_EQ(again->mounts.at(0).host_path(), container.mounts.at(0).host_path());
  EXPECT_NE(Hold(*again, 2 * kUnitBytes), nullptr);
}

TEST_F(NodeLifeCycle, AContainerThatStartsRightAfterTheDaemonFindsItsGrant) {
  StartPlugin();
  RunPod("a", 1);
  daemon().KillHard();
  StartDaemon();
  const auto started = kubelet().StartContainer(UidOf("a"), "main");
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_NE(Hold(*started, kUnitBytes), nullptr) << "PreStartContainer has seen to it";
}

// A stopped process keeps its sockets, and answers nothing.
TEST_F(NodeLifeCycle, ADaemonThatHangsCountsAsAwayAfterTheSameTimeout) {
  StartPlugin({"--daemon_timeout_ms=1000"});
  ASSERT_TRUE(daemon().process().StopAndWait());
  std::atomic<bool> refused{false};
  std::thread pod([&] {
    refused = !kubelet()
                   .Admit({.uid = "u",
                           .namespace_name = "team",
                           .name = "a",
                           .containers = {{.name = "main", .resources = {{kMemory, 1}}}}})
                   .ok();
  });
  EXPECT_TRUE(Eventually([&] { return refused.load(); })) << "Allocate";
  EXPECT_TRUE(KubeletSees(kUnits, 0)) << plugin().errors().Text();
  daemon().process().Signal(SIGCONT);
  pod.join();
  EXPECT_TRUE(KubeletSees(kUnits, kUnits)) << plugin().errors().Text();
  EXPECT_TRUE(Eventually([&] { return Grants().empty(); })) << "those of calls that were cut off are revoked";
}

TEST_F(NodeLifeCycle, APodThatComesWhileTheDaemonIsAwayWaitsForIt) {
  StartPlugin();
  ASSERT_TRUE(daemon().process().StopAndWait());
  RunOptions container;
  std::thread pod([&] { container = RunPod("a", 1); });
  EXPECT_TRUE(Eventually([&] { return Probe() == 1; })) << "it waits";
  daemon().KillHard();
  StartDaemon();
  pod.join();
  EXPECT_THAT(container.mounts, SizeIs(1));
}

TEST_F(NodeLifeCycle, ADaemonThatStaysAwayFailsThePodWithAReason) {
  StartPlugin({"--daemon_timeout_ms=300"});
  daemon().KillHard();
  const absl::Status admitted = kubelet().Admit({.uid = "u",
                                                 .namespace_name = "team",
                                                 .name = "a",
                                                 .containers = {{.name = "main", .resources = {{kMemory, 1}}}}});
  EXPECT_FALSE(admitted.ok());
  EXPECT_THAT(std::string(admitted.message()), HasSubstr("rnicd"));
  StartDaemon();
  EXPECT_THAT(Grants(), IsEmpty());
}

TEST_F(NodeLifeCycle, APodThatDiesAtOnceLeavesNothingToThePodThatGetsItsDevices) {
  StartPlugin({"--reconcile_interval_ms=240000", "--revoke_grace_ms=3600000"});
  const RunOptions first = RunPod("a", kUnits);
  kubelet().Remove(UidOf("a"));
  const RunOptions second = RunPod("b", 1);
  ASSERT_THAT(Grants(), SizeIs(1));
  EXPECT_EQ(Grants()[0].limits().pinned_bytes(), kUnitBytes);
  EXPECT_FALSE(DoorExists(first));
  EXPECT_NE(Hold(second, kUnitBytes), nullptr);
}

// Ten init containers with all units must not give their pod ten times the units.
TEST_F(NodeLifeCycle, AnInitContainersDoorIsGoneForTheContainerAfterIt) {
  StartPlugin({"--revoke_grace_ms=3600000"});
  ASSERT_TRUE(kubelet()
                  .Admit({.uid = UidOf("a"),
                          .namespace_name = "team",
                          .name = "a",
                          .containers = {{.name = "init", .resources = {{kMemory, 2}}, .init = true},
                                         {.name = "main", .resources = {{kMemory, 3}}}}})
                  .ok());
  const auto init = kubelet().StartContainer(UidOf("a"), "init");
  ASSERT_TRUE(init.ok()) << init.status();
  EXPECT_NE(Hold(*init, 2 * kUnitBytes), nullptr);
  const auto app = kubelet().StartContainer(UidOf("a"), "main");
  ASSERT_TRUE(app.ok()) << app.status();
  EXPECT_NE(Hold(*app, 3 * kUnitBytes), nullptr);
  EXPECT_FALSE(DoorExists(*init));
}

// Its processes survive, as they may when a runtime fails to kill them.
TEST_F(NodeLifeCycle, APodThatIsGoneWithoutCleaningUpGivesItsPagesBack) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  const auto process = Hold(container, 4 * kUnitBytes);
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; }));
  kubelet().Remove(UidOf("a"));
  EXPECT_TRUE(Eventually([&] { return Pinned() == 0; })) << plugin().errors().Text();
  // The session ends first.
  EXPECT_TRUE(Eventually([&] { return !DoorExists(container); }));
}

TEST_F(NodeLifeCycle, NothingIsRevokedWhileTheKubeletDoesNotSayWhoHoldsWhat) {
  StartPlugin();
  const RunOptions container = RunPod("a", 1);
  kubelet().SetPodResourcesAway(true);
  EXPECT_TRUE(GraceIsOver());
  EXPECT_THAT(Grants(), SizeIs(1));
  kubelet().SetPodResourcesAway(false);
  EXPECT_NE(Hold(container, kUnitBytes), nullptr);
}

TEST_F(NodeLifeCycle, GrantsOfOperatorsAreNotThePlugins) {
  StartPlugin();
  v1::CreateGrantRequest request;
  request.set_name("by-hand");
  CreateGrant(daemon(), request);
  RunPod("a", 1);
  kubelet().Remove(UidOf("a"));
  EXPECT_TRUE(Eventually([&] { return Grants().size() == 1; }));
  EXPECT_TRUE(GraceIsOver());
  ASSERT_THAT(Grants(), SizeIs(1));
  EXPECT_EQ(Grants()[0].tenant(), "grant/by-hand");
}

TEST_F(NodeLifeCycle, ThePluginWaitsForADaemonThatComesLater) {
  daemon().KillHard();
  LaunchPlugin();
  ASSERT_TRUE(plugin().errors().WaitFor("the daemon does not answer", kTimeout));
  EXPECT_THAT(kubelet().registrations(), IsEmpty());
  StartDaemon();
  EXPECT_TRUE(KubeletSees(kUnits, kUnits)) << plugin().errors().Text();
}

TEST_F(NodeLifeCycle, TheProbeSaysWhetherThePluginServes) {
  EXPECT_EQ(Probe(), 1);
  StartPlugin();
  EXPECT_EQ(Probe(), 0);
  plugin().Signal(SIGTERM);
  ASSERT_TRUE(plugin().WaitForEnd().has_value());
  EXPECT_EQ(plugin().WaitForEnd()->exit_code, 0);
  EXPECT_EQ(Probe(), 1);
}

TEST_F(NodeLifeCycle, TheProbeFailsWhileAnAllocationHangs) {
  StartPlugin();
  ASSERT_TRUE(daemon().process().StopAndWait());
  std::thread pod([&] { RunPod("a", 1); });
  EXPECT_TRUE(Eventually([&] { return Probe() == 1; })) << "the next pod would wait as well";
  daemon().process().Signal(SIGCONT);
  pod.join();
  EXPECT_TRUE(Eventually([&] { return Probe() == 0; })) << plugin().errors().Text();
}

TEST_F(NodeLifeCycle, FlagsThatDoNotSuitTheNodeEndThePluginWithTheReasonLast) {
  LaunchPlugin({absl::StrCat("--resources=", kMemory, "=1GiB")});
  const auto end = plugin().WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 2);
  plugin().errors().WaitForEnd(kTimeout);
  const std::string lines = plugin().errors().Text();
  EXPECT_THAT(lines.substr(lines.rfind('\n', lines.size() - 2) + 1),
              HasSubstr("not a single unit of 1073741824 bytes fits into its share of the pool of 16777216 bytes"));
}

// The alert KubeletRegistrationLost is based on the time since the daemon last received the pods.
TEST_F(NodeLifeCycle, OfPodsIsToldOnlyWhoIsRegistered) {
  StartPlugin();
  EXPECT_TRUE(PodsAreReported()) << plugin().errors().Text();
  kubelet().Stop();
  kubelet().RefuseRegistrations("not today");
  kubelet().Start();
  EXPECT_TRUE(plugin().errors().WaitFor("not today", kTimeout));
  // A report may be under way.
  ASSERT_TRUE(PodsAreAsked(2));
  const uint64_t reports = PodReports();
  ASSERT_TRUE(PodsAreAsked(3));
  EXPECT_EQ(PodReports(), reports) << "the kubelet answers, and knows no such plugin";
  kubelet().RefuseRegistrations("");
  EXPECT_TRUE(PodsAreReported()) << plugin().errors().Text();
}

}  // namespace
}  // namespace rnicd::test
