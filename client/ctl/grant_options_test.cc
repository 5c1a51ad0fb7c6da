#include "client/ctl/commands/grant_options.h"

#include <sstream>

#include "client/cpp/client_options.h"
#include "client/ctl/commands.h"
#include "client/ctl/line/common_options.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

absl::StatusOr<v1::CreateGrantRequest> Create(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"grant", "create"});
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments, Commands(), CommonOptions());
  EXPECT_TRUE(line.ok()) << line.status();
  return GrantRequestFrom(*line);
}

TEST(GrantOptions, NameIsEnough) {
  const auto request = Create({"--name", "ml"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name(), "ml");
  EXPECT_EQ(request->lifetime_ms(), 0u);
  EXPECT_EQ(request->limits().ByteSizeLong(), 0u);
  EXPECT_EQ(request->session_limits().ByteSizeLong(), 0u);
}

TEST(GrantOptions, ADoorIsMadeOnRequestOnly) {
  EXPECT_FALSE(Create({"--name", "ml"})->door());
  EXPECT_TRUE(Create({"--name", "ml", "--door"})->door());
}

TEST(GrantOptions, EveryOptionIsRead) {
  const auto request = Create({"--name",           "ml",
                               "--pod-uid",        "0123456789abcdef0123456789abcdef",
                               "--lifetime",       "7d",
                               "--pinned",         "64MiB",
                               "--memory",         "1GiB",
                               "--regions",        "100",
                               "--queue-pairs",    "4",
                               "--sessions",       "2",
                               "--rate",           "1000",
                               "--limits",         "cq_entries=4096,registered_bytes=128MiB",
                               "--session-limits", "pinned_bytes=16MiB,regions=3",
                               "--listen",         "10.98.0.1@7000-7010",
                               "--connect",        "10.98.0.0/16,fd00::/8@7000",
                               "--accept",         "10.98.0.0/16"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->pod_uid(), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(request->lifetime_ms(), 7u * 24 * 3'600'000);
  EXPECT_EQ(request->limits().pinned_bytes(), 64u << 20);
  EXPECT_EQ(request->limits().memory_bytes(), 1u << 30);
  EXPECT_EQ(request->limits().regions(), 100u);
  EXPECT_EQ(request->limits().queue_pairs(), 4u);
  EXPECT_EQ(request->limits().sessions(), 2u);
  EXPECT_EQ(request->limits().requests_per_second(), 1000u);
  EXPECT_EQ(request->limits().cq_entries(), 4096u);
  EXPECT_EQ(request->limits().registered_bytes(), 128u << 20);
  EXPECT_EQ(request->session_limits().pinned_bytes(), 16u << 20);
  EXPECT_EQ(request->session_limits().regions(), 3u);
  EXPECT_EQ(request->connections().ShortDebugString(),
            "listen { prefix: \"10.98.0.1\" first_port: 7000 last_port: 7010 } connect { prefix: \"10.98.0.0/16\" } "
            "connect { prefix: \"fd00::/8\" first_port: 7000 last_port: 7000 } accept { prefix: \"10.98.0.0/16\" }");
}

TEST(GrantOptions, MistakesAreNamed) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "option --name is missing"},
      {{"--name=x", "--door", "--secret-only"}, "options --door and --secret-only exclude each other"},
      {{"--name=x", "--pinned=many"}, "option --pinned: 'many' is not a size such as 64KiB, 64MiB or 1GiB"},
      {{"--name=x", "--rate=1KiB"}, "option --rate: '1KiB' is not a number"},
      {{"--name=x", "--limits=pages=3"}, "option --limits: 'pages' is not a limit of policy.proto"},
      {{"--name=x", "--limits=regions"},
       "option --limits: 'regions' is not a limit and its value, such as regions=100"},
      {{"--name=x", "--regions=1", "--limits=regions=2"}, "option --limits: regions is given twice"},
      {{"--name=x", "--connect=10.98.0.1/16"},
       "option --connect: '10.98.0.1/16' is not an address, or a prefix such as 10.98.0.0/16"},
      {{"--name=x", "--lifetime=0"},
       "option --lifetime: '0' is not a duration such as 500ms, 30s, 5m or 1h, from 1 ms to 3652 d 10 h"},
      {{"--name=x", "--lifetime=4000d"},
       "option --lifetime: '4000d' is not a duration such as 500ms, 30s, 5m or 1h, from 1 ms to 3652 d 10 h"},
  };
  for (const Case& wrong : cases) {
    const absl::Status status = Create(wrong.arguments).status();
    EXPECT_TRUE(IsUsageError(status)) << wrong.message;
    EXPECT_EQ(status.message(), wrong.message);
  }
}

// All mistakes are found before the daemon is called.
TEST(OperatorsCommands, MistakesExitWithTwo) {
  const std::vector<std::vector<std::string>> lines = {
      {"grant"},
      {"grant", "make"},
      {"grant", "revoke"},
      {"grant", "revoke", "many"},
      {"grant", "list", "17"},
      {"grant", "list", "--name", "x"},
      {"grant", "list", "--door"},
      {"doors", "17"},
      {"grant", "revoke", "17", "--pinned", "4096"},
      {"inspect"},
      {"inspect", "-17"},
      {"evict"},
      {"evict", "0xg"},
      {"evict", "99999999999999999999"},
      {"log-level"},
      {"drain", "--resume", "--wait", "1s"},
      {"drain", "--wait", "soon"},
      {"top", "--interval", "1ms"},
      {"top", "--count", "0"},
  };
  for (const std::vector<std::string>& line : lines) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunRnicctl(line, out, err), 2) << line.front() << ": " << out.str() << err.str();
    EXPECT_TRUE(err.str().starts_with("rnicctl: ")) << err.str();
  }
}

TEST(OperatorsCommands, WithoutDaemonTheyExitWithOne) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{{"tenants"},
                                                                                    {"doors"},
                                                                                    {"top", "--count=1"},
                                                                                    {"inspect", "17"},
                                                                                    {"evict", "0x11"},
                                                                                    {"grant", "create", "--name=x"},
                                                                                    {"grant", "list"},
                                                                                    {"grant", "revoke", "17"},
                                                                                    {"drain"},
                                                                                    {"log-level", "debug"},
                                                                                    {"reload"},
                                                                                    {"dump"}}) {
    std::vector<std::string> arguments = line;
    arguments.push_back("--socket-dir=" + DefaultSocketDir() + "-of-nobody");
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunRnicctl(arguments, out, err), 1) << line.front();
    EXPECT_NE(err.str().find("no answer from rnicd"), std::string::npos) << err.str();
  }
}

}  // namespace
}  // namespace rnicd::ctl
