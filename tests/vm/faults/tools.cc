#include "tests/vm/faults/tools.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "absl/strings/str_join.h"
#include "tests/support/process/child_process.h"

namespace rnicd::test {

ToolOutput RunTool(const std::vector<std::string>& command, const std::vector<std::string>& input) {
  auto child = ChildProcess::Start({.command = command});
  if (!child.ok()) {
    return {.errors = child.status().ToString()};
  }
  ChildProcess& process = **child;
  for (const std::string& line : input) {
    process.WriteLine(line);
  }
  process.CloseInput();
  const std::optional<ProcessEnd> end = process.WaitForEnd();
  process.output().WaitForEnd(kTimeout);
  process.errors().WaitForEnd(kTimeout);
  return {.exit_code = end.has_value() ? end->exit_code : -1,
          .output = process.output().Text(),
          .errors = process.errors().Text()};
}

std::string MustRunTool(const std::vector<std::string>& command, const std::vector<std::string>& input) {
  const ToolOutput result = RunTool(command, input);
  EXPECT_EQ(result.exit_code, 0) << absl::StrJoin(command, " ") << ": " << result.errors;
  return result.output;
}

}  // namespace rnicd::test
