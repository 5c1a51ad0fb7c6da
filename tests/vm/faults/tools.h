#pragma once

#include <string>
#include <vector>

namespace rnicd::test {

// Output of a program that ran to completion.
struct ToolOutput {
  // Exit code; -1 if the program could not be started, timed out or was killed by a signal.
  int exit_code = -1;
  std::string output;
  std::string errors;
};

// The program is looked up in PATH.
ToolOutput RunTool(const std::vector<std::string>& command);
// Same; any exit code but 0 is a test failure. Returns the output.
std::string MustRunTool(const std::vector<std::string>& command);

}  // namespace rnicd::test
