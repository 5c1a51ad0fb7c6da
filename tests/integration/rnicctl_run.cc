#include "tests/integration/rnicctl_run.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/child_process.h"
#include "tests/support/temp_dir.h"

namespace rnicd::test {

std::vector<std::string> RnicctlRun::lines() const {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    lines.push_back(output.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

nlohmann::json RnicctlRun::json() const {
  nlohmann::json parsed = nlohmann::json::parse(output, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << "not JSON: " << output;
  return parsed.is_discarded() ? nlohmann::json() : parsed;
}

RnicctlRun RunRnicctl(const DaemonProcess& daemon, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {ExecutableForEveryone(RNICCTL_PATH), "--socket-dir=" + daemon.socket_dir()};
  command.insert(command.begin() + 1, arguments.begin(), arguments.end());
  auto process = ChildProcess::Start({.command = std::move(command), .uid = WorkloadUid()});
  RnicctlRun run;
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return run;
  }
  run.exit_code = (*process)->WaitForEnd(6 * kTimeout).value_or(ProcessEnd()).exit_code;
  (*process)->output().WaitForEnd(kTimeout);
  (*process)->errors().WaitForEnd(kTimeout);
  run.output = (*process)->output().Text();
  run.errors = (*process)->errors().Text();
  return run;
}

}  // namespace rnicd::test
