#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "daemon/app/config/config.h"

// Shared by the tests of the flags that every system has, and of those that one has.
namespace rnicd::app {

struct BadValue {
  const char* flag;
  const char* value;
};

class ConfigTest : public ::testing::Test {
 protected:
  // Sets a flag by name, as the command line does.
  static void Set(const char* name, const std::string& value) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    ASSERT_NE(flag, nullptr) << name;
    std::string error;
    ASSERT_TRUE(flag->ParseFrom(value, &error)) << name << ": " << error;
  }
  std::vector<std::string> Errors() {
    std::vector<std::string> errors;
    config_ = ConfigFromFlags(SystemCards(), errors);
    return errors;
  }

  // Each by itself is one error that names its flag, and all together are an error for each flag.
  void ExpectEachIsNamedByItsFlag(std::span<const BadValue> values) {
    std::set<std::string> flags;
    for (const BadValue& bad : values) {
      const absl::FlagSaver saver;
      Set(bad.flag, bad.value);
      EXPECT_THAT(Errors(), ::testing::ElementsAre(::testing::StartsWith("--" + std::string(bad.flag) + ": must")))
          << bad.value;
      flags.insert(bad.flag);
    }
    for (const BadValue& bad : values) {
      Set(bad.flag, bad.value);
    }
    const std::vector<std::string> errors = Errors();
    EXPECT_EQ(errors.size(), flags.size());
    for (const std::string& flag : flags) {
      EXPECT_THAT(errors, ::testing::Contains(::testing::StartsWith("--" + flag + ":")));
    }
  }

  absl::FlagSaver saver_;
  Config config_;
};

}  // namespace rnicd::app
