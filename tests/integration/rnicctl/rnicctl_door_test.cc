// A grant with a door, as an operator makes it and a workload goes through it.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

using Arguments = std::vector<std::string>;

std::unique_ptr<ChildProcess> StartTool(const std::string& socket_dir, const Arguments& arguments) {
  Arguments command = {"env", "RNICD_GRANT=", "RNICD_SOCKET_DIR=" + socket_dir, RNICCTL_PATH};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = ChildProcess::Start({.command = std::move(command)});
  EXPECT_TRUE(process.ok()) << process.status();
  return process.ok() ? *std::move(process) : nullptr;
}

class RnicctlDoor : public DaemonTest {
 protected:
  // As an operator does.
  RnicctlRun Run(const Arguments& arguments) { return Finish(*StartTool(daemon().socket_dir(), arguments)); }
  Json Doors() { return Run({"doors", "--json"}).json()["doors"]; }
};

// The container's mount of the directory is left out: the daemon's own user finds it where it is.
TEST_F(RnicctlDoor, AdmitsWithoutASecretUntilTheGrantIsRevoked) {
  const RnicctlRun created = Run({"grant", "create", "--name=web", "--door", "--json"});
  ASSERT_EQ(created.exit_code, 0) << created.errors;
  const std::string id = created.json()["grant_id"];
  const std::string door = created.json()["socket_dir"];

  const auto holder = StartTool(door, {"register", "--size=4KiB", "--hold=forever", "--json"});
  ASSERT_TRUE(Eventually([&] { return Json::accept(holder->output().Text()); })) << holder->errors().Text();
  EXPECT_EQ(Run({"sessions", "--json"}).json()["sessions"][0]["tenant"], "grant/web");
  EXPECT_EQ(Run({"grant", "list", "--json"}).json()["grants"][0]["door"]["socket_dir"], door);
  const Json doors = Doors();
  ASSERT_EQ(doors.size(), 1u);
  EXPECT_EQ(doors[0]["grant_id"], id);
  EXPECT_EQ(doors[0]["connections"], 1);
  EXPECT_NE(Run({"doors"}).output.find("grant/web"), std::string::npos);
  const RnicctlRun short_lived = Finish(*StartTool(door, {"alloc", "--size=4KiB"}));
  EXPECT_EQ(short_lived.exit_code, 0) << short_lived.errors;

  EXPECT_EQ(Run({"grant", "revoke", id}).exit_code, 0);
  const RnicctlRun ended = Finish(*holder);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("grant_revoked"), std::string::npos) << ended.errors;
  EXPECT_FALSE(std::filesystem::exists(door));
  EXPECT_EQ(Doors().size(), 0u);
}

TEST_F(RnicctlDoor, OfNobodyAreNone) {
  const RnicctlRun none = Run({"doors"});
  EXPECT_EQ(none.exit_code, 0) << none.errors;
  EXPECT_EQ(none.lines().size(), 1u) << none.output;
}

}  // namespace
}  // namespace rnicd::test
