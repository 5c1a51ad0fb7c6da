#include "client/kubernetes/node/cluster.h"

#include "base/files/foreign_file_linux_test.h"
#include "client/kubernetes/node/folder_fixture_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClusterPodList, NamesPodsWithTheirLabels) {
  const auto pods = ParsePodList(R"({"kind": "PodList", "items": [
    {"metadata": {"uid": "u-1", "namespace": "storage", "name": "a", "labels": {"tier": "gold", "app": "kv"}},
     "status": {"phase": "Running"}},
    {"metadata": {"uid": "u-2", "namespace": "guests", "name": "b"}, "status": {"phase": "Pending"}}]})");
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT(*pods, ElementsAre(ClusterPod{"u-1", "storage", "a", {{"app", "kv"}, {"tier", "gold"}}},
                                 ClusterPod{"u-2", "guests", "b", {}}));
}

TEST(ClusterPodList, LeavesOutPodsThatAreOver) {
  const auto pods = ParsePodList(R"({"items": [
    {"metadata": {"uid": "u-1", "namespace": "n", "name": "a"}, "status": {"phase": "Succeeded"}},
    {"metadata": {"uid": "u-2", "namespace": "n", "name": "b"}, "status": {"phase": "Failed"}}]})");
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT(*pods, IsEmpty());
}

// The mirror pod in the API has a different UID; the control groups have the kubelet's.
TEST(ClusterPodList, TakesTheKubeletsUidOfAStaticPod) {
  const auto pods = ParsePodList(R"({"items": [{"metadata": {"uid": "mirror", "namespace": "n", "name": "a",
    "annotations": {"kubernetes.io/config.hash": "0123456789abcdef0123456789abcdef"}}}]})");
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 1u);
  EXPECT_EQ(pods->front().uid, "0123456789abcdef0123456789abcdef");
}

TEST(ClusterPodList, OfNothingIsEmpty) {
  for (const char* json : {R"({"items": []})", R"({"items": null})"}) {
    const auto pods = ParsePodList(json);
    ASSERT_TRUE(pods.ok()) << json;
    EXPECT_THAT(*pods, IsEmpty());
  }
}

TEST(ClusterPodList, RefusesWhatIsNone) {
  for (const char* json :
       {"", "[]", "{}", "null", R"({"items": {}})", R"({"items": [1]})", R"({"items": [{}]})",
        R"({"items": [{"metadata": []}]})", R"({"kind": "Status", "code": 403})", R"({"items": [)"}) {
    EXPECT_EQ(ParsePodList(json).status().code(), absl::StatusCode::kInternal) << json;
  }
}

TEST(Cluster, WithoutATokenAsksNobody) {
  const Cluster cluster({.server = "https://127.0.0.1:1", .token_file = "/nonexistent/token", .node_name = "n"});
  const absl::Status status = cluster.Pods().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/nonexistent/token"));
}

// Credentials as the kubelet mounts them: links, to files of root or of the plugin's user.
class ClusterCredentials : public FolderFixture {
 protected:
  ClusterCredentials() {
    Write("token-1", "very-secret\n");
    Write("ca-1", "no certificate\n");
    EXPECT_EQ(symlink("token-1", Path("token").c_str()), 0);
    EXPECT_EQ(symlink("ca-1", Path("ca.crt").c_str()), 0);
  }
  absl::Status Outcome() const {
    return Cluster({.server = "https://127.0.0.1:1",
                    .token_file = Path("token"),
                    .ca_file = Path("ca.crt"),
                    .node_name = "n"})
        .Pods()
        .status();
  }
};

TEST_F(ClusterCredentials, AreReadThroughLinks) {
  EXPECT_EQ(Outcome().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Outcome().message()), ::testing::StartsWith("the API server: "));
}

TEST_F(ClusterCredentials, ThatAnotherUserCanWriteAreNotUsed) {
  const std::string cause = LetAnotherUserWrite(Path("ca-1"));
  EXPECT_EQ(Outcome(), absl::UnavailableError(Path("ca.crt") + ": " + cause));
  LetAnotherUserWrite(Path("token-1"));
  EXPECT_EQ(Outcome(), absl::UnavailableError(Path("token") + ": " + cause));
}

TEST_F(ClusterCredentials, ThatAreEmptyOrTooLongAreNotUsed) {
  Write("ca-1", "\n");
  EXPECT_EQ(Outcome(), absl::UnavailableError(Path("ca.crt") + ": is empty"));
  Write("token-1", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(Outcome(), absl::UnavailableError(Path("token") + ": is longer than 1048576 bytes"));
}

}  // namespace
}  // namespace rnicd::kubernetes
