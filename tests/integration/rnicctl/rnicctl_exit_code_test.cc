// The exit codes of the real rnicctl: those of its README and manual page.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

using Arguments = std::vector<std::string>;

class RnicctlExitCode : public DaemonTest {
 protected:
  // Runs rnicctl as the last command of a shell: `redirected` is the rest of its line. $F names a file that is not
  // there yet.
  RnicctlRun Run(const std::string& redirected, const Arguments& arguments, const std::string& before = "") {
    const TempDir directory;
    const std::string script = "F=" + directory.path() + "/f; " + before + " exec \"$0\" \"$@\" " + redirected;
    Arguments command = {"sh", "-c", script, ExecutableForEveryone(RNICCTL_PATH),
                         "--socket-dir=" + daemon().socket_dir()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto process = ChildProcess::Start({.command = std::move(command)});
    if (!process.ok()) {
      ADD_FAILURE() << process.status();
      return RnicctlRun();
    }
    return Finish(**process, 6 * kTimeout);
  }
  RnicctlRun RunIntoNothing(const Arguments& arguments) {
    return Run(">&5 5>&-", arguments, "mkfifo $F; exec 4<>$F; exec 5>$F; exec 4<&-;");
  }
};

const std::vector<Arguments>& CommandsThatPrint() {
  static const std::vector<Arguments> kCommands = {{"adapters"},
                                                   {"status"},
                                                   {"health"},
                                                   {"sessions"},
                                                   {"regions", "--json"},
                                                   {"listeners"},
                                                   {"connections", "--json"},
                                                   {"tenants"},
                                                   {"dump"},
                                                   {"grant", "list"},
                                                   {"top", "--count=1000000"},
                                                   {"alloc", "--size=4KiB"},
                                                   {"register", "--size=4KiB", "--hold=forever"},
                                                   {"demo", "fast-register", "--pages=2"},
                                                   {"drain", "--resume"},
                                                   {"completion", "bash"},
                                                   {"help"},
                                                   {"status", "--help"},
                                                   {"--version"}};
  return kCommands;
}

TEST_F(RnicctlExitCode, IsOneWhenTheOutputIsLost) {
  for (const Arguments& arguments : CommandsThatPrint()) {
    const RnicctlRun full = Run(">/dev/full", arguments);
    EXPECT_EQ(full.exit_code, 1) << arguments[0];
    EXPECT_NE(full.errors.find("the output could not be written: No space left on device"), std::string::npos)
        << arguments[0] << ": " << full.errors;
    const RnicctlRun closed = Run(">&-", arguments);
    EXPECT_EQ(closed.exit_code, 1) << arguments[0];
    EXPECT_NE(closed.errors.find("Bad file descriptor"), std::string::npos) << arguments[0] << ": " << closed.errors;
  }
}

TEST_F(RnicctlExitCode, IsOneWithoutAWordWhenTheReaderHasGone) {
  for (const Arguments& arguments : CommandsThatPrint()) {
    const RnicctlRun run = RunIntoNothing(arguments);
    EXPECT_EQ(run.exit_code, 1) << arguments[0];
    EXPECT_EQ(run.errors, "") << arguments[0];
  }
}

TEST_F(RnicctlExitCode, GrantWhoseSecretIsLostIsRevoked) {
  const Arguments create = {"grant", "create", "--name=lost", "--secret-only"};
  for (const RnicctlRun& run : {Run(">/dev/full", create), Run(">&-", create), RunIntoNothing(create)}) {
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_NE(run.errors.find("was revoked again"), std::string::npos) << run.errors;
  }
  EXPECT_EQ(Run("", {"grant", "list", "--json"}).json()["grants"].size(), 0u);
}

TEST_F(RnicctlExitCode, IsThatOfTheDocuments) {
  const std::vector<std::pair<int, Arguments>> rows = {
      {0, {"status"}},
      {0, {"health"}},
      {0, {"-h"}},
      {0, {"grant", "-h"}},
      {0, {"drain", "--resume"}},
      {0, {"register", "--size=4KiB"}},
      // Refused by the daemon, or failed here.
      {1, {"register", "--size=5"}},
      {1, {"register", "--size=4KiB", "--adapter=none"}},
      {1, {"register", "--size=4KiB", "--grant=none"}},
      {1, {"inspect", "1"}},
      {1, {"grant", "revoke", "1"}},
      {1, {"grant", "create", "--name=" + std::string(10'000, 'x')}},
      {1, {"reload"}},
      {1, {"selftest", "--adapter=none"}},
      {1, {"pingpong", "--listen=127.0.0.1:0", "--wait=1ms"}},
      {1, {"status", "--admin-socket-dir=/nonexistent"}},
      // Wrong command lines.
      {2, {}},
      {2, {"juggle"}},
      {2, {"help", "juggle"}},
      {2, {"register"}},
      {2, {"register", "--size=many"}},
      {2, {"register", "--size=4KiB", "--hold=long"}},
      {2, {"alloc", "--size=4KiB", "--page-size=3KiB"}},
      {2, {"status", "-x"}},
      {2, {"inspect", "me"}},
      {2, {"evict"}},
      {2, {"grant"}},
      {2, {"grant", "create"}},
      {2, {"grant", "revoke"}},
      {2, {"drain", "--resume", "--wait=1s"}},
      {2, {"log-level"}},
      {2, {"log-level", "trace"}},
      {2, {"completion", "fish"}},
      {2, {"demo"}},
      {2, {"pingpong"}},
      {2, {"top", "--count=0"}},
  };
  for (const auto& [code, arguments] : rows) {
    const RnicctlRun run = Run("", arguments);
    EXPECT_EQ(run.exit_code, code) << testing::PrintToString(arguments) << run.errors;
    EXPECT_EQ(run.errors.empty(), code == 0) << testing::PrintToString(arguments);
  }
}

}  // namespace
}  // namespace rnicd::test
