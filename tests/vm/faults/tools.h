#pragma once

#include <string>
#include <vector>

namespace rnicd::test {

// What a program that was run to its end said.
struct ToolOutput {
  // -1 when it could not be started, did not end in time or was ended by a signal.
  int exit_code = -1;
  std::string output;
  std::string errors;
};

// The program is looked up in PATH.
ToolOutput RunTool(const std::vector<std::string>& command);
// Likewise; anything but exit code 0 is a test failure. Its output.
std::string MustRunTool(const std::vector<std::string>& command);

}  // namespace rnicd::test
