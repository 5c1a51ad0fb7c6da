// What the plugin refuses to start with, and what it survives.
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;

class PluginStart : public KubernetesNode {
 protected:
  // The exit code, and what the plugin said.
  std::pair<int, std::string> Refusal(const std::string& flag) {
    LaunchPlugin({flag});
    const ProcessEnd end = plugin().WaitForEnd().value_or(ProcessEnd());
    plugin().errors().WaitForEnd(kTimeout);
    return {end.exit_code, plugin().errors().Text()};
  }
};

TEST_F(PluginStart, UnknownFlagsAndValuesOfTheWrongKindAreRefusedWithStatusTwo) {
  for (const char* const name : {"--no_such_flag", "--pool_bytes", "--probe", "--flagfile"}) {
    const auto [exit_code, errors] = Refusal(std::string(name) + "=/many");
    EXPECT_EQ(exit_code, 2) << name;
    EXPECT_THAT(errors, HasSubstr(name));
  }
}

TEST_F(PluginStart, SecretsWhereContainersSeeThemAreRefused) {
  const std::string seen = daemon().socket_dir() + "/state";
  std::filesystem::create_directory(seen);
  std::filesystem::create_directory_symlink(seen, home() + "/link");
  const auto [text_code, text_errors] = Refusal("--state_dir=" + seen + "/.");
  EXPECT_EQ(text_code, 2);
  EXPECT_THAT(text_errors, HasSubstr("--state_dir: must not be --socket_dir or in it"));
  const auto [link_code, link_errors] = Refusal("--state_dir=" + home() + "/link");
  EXPECT_EQ(link_code, 1);
  EXPECT_THAT(link_errors, HasSubstr("/link: must not be --socket_dir or in it"));
}

}  // namespace
}  // namespace rnicd::test
