// The command line tool as people and scripts use it: the real program against the real daemon.
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

class Rnicctl : public DaemonTest {
 protected:
  std::unique_ptr<ChildProcess> Start(std::vector<std::string> arguments,
                                      std::optional<uid_t> uid = std::nullopt) const {
    arguments.insert(arguments.begin(), ExecutableForEveryone(RNICCTL_PATH));
    auto process = ChildProcess::Start({.command = std::move(arguments), .uid = uid});
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  RnicctlRun Run(const std::vector<std::string>& arguments, std::optional<uid_t> uid = std::nullopt) const {
    return Finish(*Start(arguments, uid));
  }

  std::string socket_dir() { return "--socket-dir=" + daemon().socket_dir(); }
};

TEST_F(Rnicctl, AdaptersAreListed) {
  const RnicctlRun table = Run({"adapters", socket_dir()}, WorkloadUid());
  EXPECT_EQ(table.exit_code, 0) << table.errors;
  EXPECT_NE(table.output.find(AdapterUnderTest()), std::string::npos) << table.output;
  const RnicctlRun json = Run({"adapters", "--json", socket_dir()}, WorkloadUid());
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(json.json()["adapters"][0]["name"], AdapterUnderTest());
  EXPECT_EQ(json.json()["adapters"][0]["provider"], ProviderUnderTest());
  EXPECT_GT(json.json()["adapters"][0]["info"]["max_registration_size"].get<uint64_t>(), 0u);
}

TEST_F(Rnicctl, AllocGivesBackWhatItTook) {
  const RnicctlRun run = Run({"alloc", "--size=64KiB", "--json", socket_dir()}, WorkloadUid());
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.json()["memory"]["size"], 65536);
  EXPECT_EQ(run.json()["memory"]["imported"], false);
}

TEST_F(Rnicctl, RegisterHoldsUntilItIsTold) {
  const auto holder =
      Start({"register", "--size=64KiB", "--label=held", "--hold=forever", "--json", socket_dir()}, WorkloadUid());
  ASSERT_NE(holder, nullptr);
  ASSERT_TRUE(Eventually([&] { return Json::accept(holder->output().Text()); })) << holder->errors().Text();
  const Json held = Json::parse(holder->output().Text());
  const std::vector<v1::RegionInfo> regions = AdminRegions(daemon());
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(held["regions"][0]["mr_id"], std::to_string(regions[0].mr_id()));
  EXPECT_EQ(held["regions"][0]["length"], 65536);
  EXPECT_NE(held["regions"][0]["remote_token"], 0);
  EXPECT_EQ(regions[0].uid(), WorkloadUid());
  // The operator sees it on both lists and in the totals.
  const Json listed = Run({"regions", "--json", socket_dir()}).json();
  ASSERT_EQ(listed["regions"].size(), 1u);
  EXPECT_EQ(listed["regions"][0]["mr_id"], held["regions"][0]["mr_id"]);
  EXPECT_EQ(listed["regions"][0]["pages"], 16);
  EXPECT_EQ(listed["regions"][0]["state"], "registered");
  const Json sessions = Run({"sessions", "--json", socket_dir()}).json();
  ASSERT_EQ(sessions["sessions"].size(), 1u);
  EXPECT_EQ(sessions["sessions"][0]["label"], "held");
  EXPECT_EQ(sessions["sessions"][0]["uid"], WorkloadUid());
  const Json status = Run({"status", "--json", socket_dir()}).json();
  EXPECT_EQ(status["registered_pages"], 16);
  EXPECT_EQ(status["sessions"], 1);
  EXPECT_EQ(status["resources"]["pinned_bytes"]["used"], 65536);
  holder->Signal(SIGTERM);
  EXPECT_EQ(holder->WaitForEnd().value_or(ProcessEnd()).exit_code, 0) << holder->errors().Text();
}

TEST_F(Rnicctl, RegisterBringsItsOwnMemoryInPieces) {
  const RnicctlRun run =
      Run({"register", "--size=1MiB", "--import", "--regions=16", "--json", socket_dir()}, WorkloadUid());
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.json()["regions"].size(), 16u);
  EXPECT_EQ(run.json()["memory"]["imported"], true);
}

}  // namespace
}  // namespace rnicd::test
