// docs/THREAT_MODEL.md promises tests by name. A promise whose test was renamed or deleted is broken.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rnicd::test {
namespace {

std::string TextOf(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> Found(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern); match != std::sregex_iterator(); ++match) {
    found.push_back((*match)[1].str() + ((*match).size() > 2 ? "." + (*match)[2].str() : ""));
  }
  return found;
}

// "Suite.Test" of every test in the sources.
std::set<std::string> FindTests(const std::filesystem::path& source) {
  const std::regex test(R"(\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))");
  std::set<std::string> tests;
  for (const char* const folder : {"base", "client", "daemon", "provider", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
      if (entry.path().string().ends_with("_test.cc")) {
        for (const std::string& name : Found(TextOf(entry.path()), test)) {
          tests.insert(name);
        }
      }
    }
  }
  return tests;
}

const std::set<std::string>& TestsOfTheSources() {
  static const std::set<std::string> tests = FindTests(RNICD_SOURCE_DIR);
  return tests;
}

TEST(ThreatModel, NamesTestsAndFilesThatExist) {
  const std::filesystem::path source(RNICD_SOURCE_DIR);
  const std::string page = TextOf(source / "docs/THREAT_MODEL.md");
  const std::set<std::string>& tests = TestsOfTheSources();
  const auto promised = Found(page, std::regex(R"(`([A-Z]\w+)\.([A-Z]\w+)`)"));
  EXPECT_GT(promised.size(), 50u);
  for (const std::string& name : promised) {
    EXPECT_TRUE(tests.contains(name)) << name;
  }
  for (const std::string& file : Found(page, std::regex(R"(`([a-z_]+/[a-z_/]+\.[a-z]+)`)"))) {
    EXPECT_TRUE(std::filesystem::is_regular_file(source / file)) << file;
  }
}

// Each of the twenty has its row, in order.
TEST(ThreatModel, HasARowForEachProperty) {
  const std::string page = TextOf(std::filesystem::path(RNICD_SOURCE_DIR) / "docs/THREAT_MODEL.md");
  const auto rows = Found(page, std::regex(R"(\n\| (\d+) \|)"));
  ASSERT_EQ(rows.size(), 20u);
  for (size_t index = 0; index < rows.size(); ++index) {
    EXPECT_EQ(rows[index], std::to_string(index + 1));
  }
}

// A property that is tested by its number is a property of the page.
TEST(ThreatModel, NamesEveryTestOfAProperty) {
  const std::string page = TextOf(std::filesystem::path(RNICD_SOURCE_DIR) / "docs/THREAT_MODEL.md");
  for (const std::string& name : TestsOfTheSources()) {
    if (name.starts_with("Trust.Property")) {
      EXPECT_NE(page.find(name), std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace rnicd::test
