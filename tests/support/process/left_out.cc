#include "tests/support/process/left_out.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kParameter = "/verbs";

// Test names as a run against the provider under test prints them.
std::set<std::string> TestsOfThisProgram() {
  std::set<std::string> names;
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int suite_index = 0; suite_index < program.total_test_suite_count(); ++suite_index) {
    const testing::TestSuite& suite = *program.GetTestSuite(suite_index);
    for (int index = 0; index < suite.total_test_count(); ++index) {
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(index)->name());
    }
  }
  return names;
}

// The test's name in a run against the provider under test.
std::string OfTheProviderUnderTest(const std::string& name) {
  return name.ends_with(kParameter) ? name.substr(0, name.size() - kParameter.size()) + "/" + ProviderUnderTest()
                                    : name;
}

}  // namespace

const std::set<std::string>& TestsLeftOutOnVerbs() {
  static const auto tests = [] {
    std::ifstream file(RNICD_NOT_ON_VERBS);
    std::set<std::string> names;
    bool sound = file.is_open();
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line.front() == '#') {
        continue;
      }
      const size_t end = line.find(kSeparator);
      sound = sound && end != std::string::npos && end > 0 && end + kSeparator.size() < line.size();
      sound = sound && names.insert(line.substr(0, end)).second;
    }
    if (!sound) {
      std::fprintf(stderr, "%s is missing, or has a line that is not 'Suite.Test | reason', or one twice\n",
                   RNICD_NOT_ON_VERBS);
      std::exit(1);
    }
    return names;
  }();
  return tests;
}

void ExpectLeftOutTestsExist(const std::string& prefix, bool begins) {
  const std::set<std::string> tests = TestsOfThisProgram();
  for (const std::string& name : TestsLeftOutOnVerbs()) {
    if (name.starts_with(prefix) == begins) {
      EXPECT_TRUE(tests.contains(OfTheProviderUnderTest(name)))
          << name << " stands in not_on_verbs.txt and is no test: mend the name, or take the line out";
    }
  }
}

}  // namespace rnicd::test
