// Pods from the cluster's API server, and the minimal rights that reading them needs.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/kubernetes/node/cluster.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

using kubernetes::Cluster;
using kubernetes::ClusterOptions;
using ::testing::HasSubstr;

constexpr char kUid[] = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";

// A self-signed certificate for 127.0.0.1, valid for a day.
void MakeCertificate(const std::string& folder) {
  auto made = ChildProcess::Start(
      {.command = {"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-nodes", "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1", "-keyout",
                   folder + "/server.key", "-out", folder + "/server.crt"}});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ((*made)->WaitForEnd().value_or(ProcessEnd()).exit_code, 0) << (*made)->errors().Text();
  ASSERT_EQ(chmod((folder + "/server.crt").c_str(), 0644), 0);
}

class ApiServer {
 public:
  explicit ApiServer(const std::string& folder) : folder_(folder) {
    MakeCertificate(folder);
    Write("token", "very-secret\n");
    Write("pods.json", R"({"items": []})");
    auto process = ChildProcess::Start({.command = {"/usr/bin/python3", API_SERVER_PATH, folder}});
    EXPECT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    const std::optional<std::string> port = process_->output().NextLine(kTimeout);
    EXPECT_TRUE(port.has_value()) << process_->errors().Text();
    options_ = {.server = "https://127.0.0.1:" + port.value_or("1"),
                .token_file = folder + "/token",
                .ca_file = folder + "/server.crt",
                .node_name = "node-1"};
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name + ".new") << text;
    ASSERT_EQ(chmod((folder_ + "/" + name + ".new").c_str(), 0644), 0);
    ASSERT_EQ(rename((folder_ + "/" + name + ".new").c_str(), (folder_ + "/" + name).c_str()), 0);
  }
  void SetPods(const std::string& items) const {
    Write("pods.json", R"({"kind": "PodList", "items": [)" + items + "]}");
  }

  const ClusterOptions& options() const { return options_; }

 private:
  const std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  ClusterOptions options_;
};

std::string PodJson(const std::string& name) {
  return absl::StrCat(R"({"metadata": {"uid": ")", kUid, R"(", "namespace": "team", "name": ")", name,
                      R"(", "labels": {"tier": "gold"}}, "status": {"phase": "Running"}})");
}

class NodeOfACluster : public KubernetesNode {
 protected:
  std::vector<std::string> ClusterFlags() const {
    const ClusterOptions& options = server_.options();
    return {"--kubernetes_server=" + options.server, "--kubernetes_token_file=" + options.token_file,
            "--kubernetes_ca_file=" + options.ca_file, "--node_name=" + options.node_name};
  }

  const ApiServer server_{home()};
};

TEST_F(NodeOfACluster, UidsAndLabelsOfPodsReachTheDaemon) {
  server_.SetPods(PodJson("a"));
  StartPlugin(ClusterFlags());
  RunPod("a", 1);
  EXPECT_TRUE(Eventually([&] { return AdminDump(daemon()).find(kUid) != std::string::npos; }))
      << plugin().errors().Text();
  EXPECT_THAT(AdminDump(daemon()), HasSubstr("\"gold\""));
  EXPECT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; }));
}

// No interval passes in this test: the policy's rules for namespaces hold from the start.
TEST_F(NodeOfACluster, ANewDaemonIsToldOfThePodsAtOnce) {
  server_.SetPods(PodJson("a"));
  std::vector<std::string> flags = ClusterFlags();
  flags.emplace_back("--reconcile_interval_ms=240000");
  StartPlugin(flags);
  EXPECT_TRUE(Eventually([&] { return AdminDump(daemon()).find(kUid) != std::string::npos; }))
      << plugin().errors().Text();
  daemon().KillHard();
  StartDaemon();
  EXPECT_TRUE(Eventually([&] { return AdminDump(daemon()).find(kUid) != std::string::npos; }))
      << plugin().errors().Text();
}

// The kubelet does not list init containers, so only its checkpoint and the API server know of it.
TEST_F(NodeOfACluster, AnInitContainerThatAloneHasUnitsKeepsItsGrantWhileItsPodLives) {
  server_.SetPods(PodJson("a"));
  StartPlugin(ClusterFlags());
  ASSERT_TRUE(kubelet()
                  .Admit({.uid = kUid,
                          .namespace_name = "team",
                          .name = "a",
                          .containers = {{.name = "init", .resources = {{kMemory, 1}}, .init = true},
                                         {.name = "main", .resources = {}}}})
                  .ok());
  const auto init = kubelet().StartContainer(kUid, "init");
  ASSERT_TRUE(init.ok()) << init.status();
  EXPECT_TRUE(Eventually([&] { return Grants().at(0).workload().container() == "init"; })) << "the daemon is told";
  EXPECT_TRUE(GraceIsOver());
  EXPECT_EQ(Grants().size(), 1u);
  EXPECT_NE(Hold(*init, kUnitBytes), nullptr);
  ASSERT_TRUE(Eventually([&] { return FileText("/state/grants.json").find("\"init\"") != std::string::npos; }));
  server_.Write("pods.json", "<html>");
  ASSERT_TRUE(plugin().errors().WaitFor("no list of pods", kTimeout));
  ASSERT_TRUE(PodsAreReported()) << plugin().errors().Text();
  EXPECT_EQ(Grants().at(0).workload().container(), "init") << "what was known stays known";
  server_.SetPods("");
  EXPECT_TRUE(Eventually([&] { return Grants().empty(); })) << plugin().errors().Text();
}

TEST_F(NodeOfACluster, AKubeletThatLosesItsCheckpointCostsNoRunningPodItsGrant) {
  server_.SetPods(PodJson("a"));
  StartPlugin(ClusterFlags());
  ASSERT_TRUE(kubelet()
                  .Admit({.uid = kUid,
                          .namespace_name = "team",
                          .name = "a",
                          .containers = {{.name = "main", .resources = {{kMemory, 1}}}}})
                  .ok());
  const auto container = kubelet().StartContainer(kUid, "main");
  ASSERT_TRUE(container.ok()) << container.status();
  ASSERT_TRUE(Eventually([&] { return FileText("/state/grants.json").find(kUid) != std::string::npos; }));
  RestartKubeletWithoutCheckpoint();
  EXPECT_TRUE(GraceIsOver());
  EXPECT_NE(Hold(*container, kUnitBytes), nullptr);
}

TEST_F(NodeOfACluster, ARefusalIsToldAndPodsThatHoldDevicesAreKnownAllTheSame) {
  const std::string stale = home() + "/stale";
  std::ofstream(stale) << "not-the-token\n";
  ASSERT_EQ(chmod(stale.c_str(), 0644), 0);
  std::vector<std::string> flags = ClusterFlags();
  flags.push_back("--kubernetes_token_file=" + stale);
  StartPlugin(flags);
  RunPod("a", 1);
  EXPECT_TRUE(plugin().errors().WaitFor("does not let this service account list pods", kTimeout));
  EXPECT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; }));
  EXPECT_EQ(plugin().errors().Text().find("not-the-token"), std::string::npos);
}

TEST_F(NodeOfACluster, ARenewedTokenIsReadAgain) {
  const Cluster cluster(server_.options());
  ASSERT_TRUE(cluster.Pods().ok()) << cluster.Pods().status();
  server_.Write("token", "renewed\n");
  EXPECT_TRUE(cluster.Pods().ok()) << cluster.Pods().status();
}

TEST_F(NodeOfACluster, AServerThatTheClusterDidNotSignIsNotTrusted) {
  const TempDir other;
  MakeCertificate(other.path());
  ClusterOptions options = server_.options();
  options.ca_file = other.path() + "/server.crt";
  EXPECT_EQ(Cluster(options).Pods().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(NodeOfACluster, AnswersThatAreNoListsAreRefused) {
  server_.Write("pods.json", "<html>");
  EXPECT_EQ(Cluster(server_.options()).Pods().status().code(), absl::StatusCode::kInternal);
  ClusterOptions elsewhere = server_.options();
  elsewhere.node_name = "node-2";
  EXPECT_EQ(Cluster(elsewhere).Pods().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace rnicd::test
