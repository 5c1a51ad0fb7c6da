#include "tests/conformance/case_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process/left_out.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

// The rows that have at least one test, with the providers they run against.
std::set<std::pair<std::string, std::string>> TestedRows() {
  std::set<std::pair<std::string, std::string>> rows;
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int suite_index = 0; suite_index < program.total_test_suite_count(); ++suite_index) {
    const testing::TestSuite& suite = *program.GetTestSuite(suite_index);
    for (int index = 0; index < suite.total_test_count(); ++index) {
      const std::string name = suite.GetTestInfo(index)->name();
      if (const std::string number = CaseNumberOf(name); !number.empty()) {
        rows.insert({name.substr(name.find('/') + 1), number});
      }
    }
  }
  return rows;
}

TEST(CaseTables, EveryRowIsTestedOrSaidNotToBe) {
  std::set<std::string> tested;
  for (const auto& [provider, number] : TestedRows()) {
    tested.insert(number);
  }
  for (const auto& [number, title] : Cases()) {
    EXPECT_NE(tested.contains(number), NotCovered().contains(number))
        << number << " (" << title << ") must have either a test or a reason for having none";
  }
}

TEST(CaseTables, EveryTestIsAboutAListedRow) {
  for (const auto& [provider, number] : TestedRows()) {
    EXPECT_TRUE(Cases().contains(number)) << number << " is not in cases.txt";
  }
}

TEST(CaseTables, EveryReasonIsAboutAListedRow) {
  for (const auto& [number, reason] : NotCovered()) {
    EXPECT_TRUE(Cases().contains(number)) << number << " is not in cases.txt";
  }
}

// A run has the tests of one provider, and every provider has the same tests.
TEST(CaseTables, EveryGapIsAboutATestOfAKnownProvider) {
  const auto tested = TestedRows();
  std::vector<std::string> known = ProvidersThatCanBeTested();
  known.emplace_back(kRings);
  known.emplace_back(kVerbsModule);
  known.emplace_back(kVerbsIwarp);
  for (const auto& [gap, reason] : Gaps()) {
    EXPECT_THAT(known, testing::Contains(gap.first));
    EXPECT_TRUE(tested.contains({ProviderUnderTest(), gap.second}))
        << "gaps.txt names " << gap.first << " " << gap.second << ", which has no test";
  }
}

TEST(CaseTables, EveryTestLeftOutOnVerbsExists) { ExpectLeftOutTestsExist("Provider/Ndk", true); }

}  // namespace
}  // namespace rnicd::test
