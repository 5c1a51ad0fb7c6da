#include <sstream>

#include "client/cpp/client_options.h"
#include "client/ctl/commands.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

TEST(PingpongOptions, MistakesAreNamedAndExitWithTwo) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "say either --listen HOST:PORT or --connect HOST:PORT"},
      {{"--listen=a:1", "--connect=a:1"}, "say either --listen HOST:PORT or --connect HOST:PORT"},
      {{"--listen=7471"}, "option --listen: '7471' is not a host and a port such as 10.0.0.7:7471 or [::]:7471"},
      {{"--connect=a:b"}, "option --connect: 'a:b' is not a host and a port such as 10.0.0.7:7471 or [::]:7471"},
      {{"--listen=a:1", "--rounds=5"}, "option --rounds is for the side that connects"},
      {{"--connect=a:1", "--rounds=0"}, "option --rounds: '0' is not a number from 1 to 1000000"},
      {{"--connect=a:1", "--size=5000"},
       "option --size: '5000' is not a whole number of 4 KiB pages such as 64KiB, 1MiB or 1GiB"},
      {{"--connect=a:1", "--size=0"},
       "option --size: '0' is not a whole number of 4 KiB pages such as 64KiB, 1MiB or 1GiB"},
      {{"--connect=a:1", "--wait=0"},
       "option --wait: '0' is not a duration such as 500ms, 30s, 5m or 1h, from 1 ms to 7 d 0 h"},
  };
  for (const Case& wrong : cases) {
    std::vector<std::string> arguments = {"pingpong", "--socket-dir=" + DefaultSocketDir() + "-of-nobody"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunRnicctl(arguments, out, err), 2) << wrong.message;
    EXPECT_EQ(err.str(), "rnicctl: " + wrong.message + "\n");
    EXPECT_EQ(out.str(), "");
  }
}

}  // namespace
}  // namespace rnicd::ctl
