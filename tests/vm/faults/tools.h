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

// The program is looked up in PATH. `input` are the lines that it reads.
ToolOutput RunTool(const std::vector<std::string>& command, const std::vector<std::string>& input = {});
// Same; any exit code but 0 is a test failure. Returns the output.
std::string MustRunTool(const std::vector<std::string>& command, const std::vector<std::string>& input = {});

}  // namespace rnicd::test
