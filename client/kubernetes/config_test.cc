#include "client/kubernetes/config.h"

#include <cstdlib>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PluginConfig : public ::testing::Test {
 protected:
  PluginConfig() {
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
  }

  static void Set(const char* flag, const std::string& value) {
    std::string problem;
    ASSERT_TRUE(absl::FindCommandLineFlag(flag)->ParseFrom(value, &problem)) << problem;
  }

  std::vector<std::string> Errors() {
    std::vector<std::string> errors;
    config_ = ConfigFromFlags(errors);
    return errors;
  }

  const absl::FlagSaver saver_;
  Config config_;
};

TEST_F(PluginConfig, DefaultsAreSound) {
  EXPECT_THAT(Errors(), IsEmpty());
  ASSERT_EQ(config_.resources.size(), 1u);
  EXPECT_EQ(config_.resources[0].unit_bytes, 64u << 20);
  EXPECT_EQ(config_.grants.limits.regions(), 65536u);
  EXPECT_EQ(config_.cluster.server, "") << "outside of a cluster nobody is asked";
}

TEST_F(PluginConfig, EveryMistakeIsReported) {
  Set("resources", "memory");
  Set("grant_limits", "pages=3");
  Set("registered_times", "0");
  Set("kubelet_dir", "relative");
  Set("kubernetes_server", "http://10.0.0.1");
  Set("own_pod", "rnicd");
  Set("log_level", "loud");
  Set("log_format", "xml");
  EXPECT_THAT(Errors(),
              ElementsAre(StartsWith("--kubelet_dir: "), StartsWith("--own_pod: "), StartsWith("--resources: "),
                          StartsWith("--grant_limits: 'pages'"), StartsWith("--registered_times: "),
                          StartsWith("--kubernetes_server: "), StartsWith("--node_name: "), StartsWith("--log_level: "),
                          StartsWith("--log_format: ")));
}

TEST_F(PluginConfig, BytesFollowFromDevicesAlone) {
  Set("grant_limits", "regions=1,pinned_bytes=1GiB");
  EXPECT_THAT(Errors(), ElementsAre(StartsWith("--grant_limits: must not name bytes")));
}

TEST_F(PluginConfig, ContainersConnectWithNobodyUnlessTheOperatorSaysWhom) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.grants.connections.ByteSizeLong(), 0u);
  Set("grant_listen", "10.98.0.1@7000-7010");
  Set("grant_connect", "10.98.0.0/16,fd00::/8");
  Set("grant_accept", "10.98.0.0/16");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.grants.connections.ShortDebugString(),
            "listen { prefix: \"10.98.0.1\" first_port: 7000 last_port: 7010 } connect { prefix: \"10.98.0.0/16\" } "
            "connect { prefix: \"fd00::/8\" } accept { prefix: \"10.98.0.0/16\" }");
  Set("grant_accept", "10.98.0.0/16@7000");
  EXPECT_THAT(Errors(), ElementsAre(StartsWith("--grant_accept: '10.98.0.0/16@7000'")));
}

TEST_F(PluginConfig, TheEnvironmentNamesTheServerWhenANodeNameIsSet) {
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.cluster.server, "");
  Set("node_name", "worker-7.example");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.cluster.server, "https://[fd00::1]:6443");
  Set("kubernetes_server", "off");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.cluster.server, "");
}

// The name becomes part of a URL.
TEST_F(PluginConfig, NodeNamesAreNames) {
  Set("node_name", "a&limit=1");
  EXPECT_THAT(Errors(), ElementsAre(StartsWith("--node_name: ")));
}

// How a path is written does not matter, and what an editor left behind is no part of it.
TEST_F(PluginConfig, PathsArePathsAndNotText) {
  const std::pair<const char*, const std::string Config::*> members[] = {
      {"admin_socket_dir", &Config::admin_socket_dir},
      {"door_dir", &Config::door_dir},
      {"container_socket_dir", &Config::container_socket_dir},
      {"pod_resources_socket", &Config::pod_resources_socket},
      {"state_dir", &Config::state_dir}};
  for (const auto& [flag, member] : members) {
    Set(flag, "//tmp/./a//");
    EXPECT_THAT(Errors(), IsEmpty()) << flag;
    EXPECT_EQ(config_.*member, "/tmp/a") << flag;
    for (const char* const bad : {"a", "/a\r", "/a "}) {
      Set(flag, bad);
      EXPECT_THAT(Errors(), ElementsAre(StartsWith(std::string("--") + flag + ": must be an absolute path"))) << bad;
    }
    Set(flag, std::string("/") + flag);
  }
  Set("kubelet_dir", "/tmp/kubelet/");
  Set("kubernetes_token_file", "/tmp/./token");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.kubelet.folder, "/tmp/kubelet");
  EXPECT_EQ(config_.cluster.token_file, "/tmp/token");
}

}  // namespace
}  // namespace rnicd::kubernetes
