#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

using Json = nlohmann::json;

// What the real rnicctl printed, and how it ended.
struct RnicctlRun {
  int exit_code = -1;
  std::string output;
  std::string errors;

  std::vector<std::string> lines() const;
  // The output as JSON; null, after a test failure, if it is not JSON.
  nlohmann::json json() const;
};

// Waits until the process has ended.
RnicctlRun Finish(ChildProcess& process, std::chrono::milliseconds limit = kTimeout);
// Runs rnicctl with these arguments on the daemon's workload socket, as an unprivileged user.
RnicctlRun RunRnicctl(const DaemonProcess& daemon, const std::vector<std::string>& arguments);

}  // namespace rnicd::test
