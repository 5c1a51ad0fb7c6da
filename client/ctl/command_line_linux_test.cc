// Sets the environment, which has other functions on each system.
#include <cstdlib>
#include <vector>

#include "client/ctl/commands.h"
#include "client/ctl/line/command_line.h"
#include "client/ctl/line/common_options.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

absl::StatusOr<CommandLine> Parsed(const std::vector<std::string>& arguments) {
  return ParseCommandLine(arguments, Commands(), CommonOptions());
}

TEST(CommandLine, DirectoriesComeFromOptionThenEnvironmentThenDefault) {
  unsetenv("RNICD_SOCKET_DIR");
  EXPECT_EQ(SocketDir(*Parsed({"status"})), "/run/rnicd");
  EXPECT_EQ(AdminSocketDir(*Parsed({"status"})), "/run/rnicd-admin");
  setenv("RNICD_SOCKET_DIR", "/env", 1);
  EXPECT_EQ(SocketDir(*Parsed({"status"})), "/env");
  EXPECT_EQ(AdminSocketDir(*Parsed({"status"})), "/env-admin");
  EXPECT_EQ(AdminSocketDir(*Parsed({"status", "--socket-dir", "/own"})), "/own-admin");
  EXPECT_EQ(AdminSocketDir(*Parsed({"status", "--socket-dir", "/own/"})), "/own-admin") << "as a shell completes it";
  setenv("RNICD_SOCKET_DIR", "/env//.", 1);
  EXPECT_EQ(AdminSocketDir(*Parsed({"status"})), "/env-admin");
  EXPECT_EQ(AdminSocketDir(*Parsed({"status", "--admin-socket-dir", "/adm"})), "/adm");
  unsetenv("RNICD_SOCKET_DIR");
}

}  // namespace
}  // namespace rnicd::ctl
