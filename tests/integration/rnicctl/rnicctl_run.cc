#include "tests/integration/rnicctl/rnicctl_run.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/process/temp_dir.h"

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
  EXPECT_FALSE(parsed.is_discarded()) << "not JSON: " << output << errors;
  return parsed.is_discarded() ? nlohmann::json() : parsed;
}

RnicctlRun Finish(ChildProcess& process, std::chrono::milliseconds limit) {
  RnicctlRun run;
  run.exit_code = process.WaitForEnd(limit).value_or(ProcessEnd()).exit_code;
  process.output().WaitForEnd(kTimeout);
  process.errors().WaitForEnd(kTimeout);
  run.output = process.output().Text();
  run.errors = process.errors().Text();
  return run;
}

RnicctlRun RunRnicctl(const DaemonProcess& daemon, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {ExecutableForEveryone(RNICCTL_PATH), "--socket-dir=" + daemon.socket_dir()};
  command.insert(command.begin() + 1, arguments.begin(), arguments.end());
  auto process = ChildProcess::Start({.command = std::move(command), .uid = WorkloadUid()});
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return RnicctlRun();
  }
  return Finish(**process, 6 * kTimeout);
}

}  // namespace rnicd::test
