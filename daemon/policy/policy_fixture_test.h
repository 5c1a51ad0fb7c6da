#pragma once

// Shared by the tests of this folder: the errors in a policy, one line each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/policy/policy_file.h"

namespace rnicd::policy {

// "LINE: REASON" of each error, without the file's name; empty when the text is a valid policy.
inline std::vector<std::string> ErrorsIn(std::string_view text) {
  const absl::StatusOr<core::Policy> policy = ParsePolicy(text, "test.file");
  if (policy.ok()) {
    return {};
  }
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(policy.status().message(), '\n')) {
    EXPECT_EQ(line.substr(0, 10), "test.file:") << line;
    lines.emplace_back(line.substr(10));
  }
  return lines;
}

}  // namespace rnicd::policy
