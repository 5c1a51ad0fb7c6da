// What the plugin refuses to start with.
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

}  // namespace
}  // namespace rnicd::test
