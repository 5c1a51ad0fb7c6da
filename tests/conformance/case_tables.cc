#include "tests/conformance/case_tables.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace rnicd::test {
namespace {

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The columns of every line that is neither empty nor a comment.
std::vector<std::vector<std::string>> ReadTable(const std::string& name, size_t columns) {
  std::ifstream file(std::string(RNICD_CONFORMANCE_DIR) + "/" + name);
  bool sound = file.is_open();
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    std::istringstream cells(line);
    std::string cell;
    rows.emplace_back();
    while (std::getline(cells, cell, '|')) {
      rows.back().push_back(Trimmed(cell));
    }
    sound = sound && rows.back().size() == columns && !rows.back().back().empty();
  }
  if (!sound) {
    std::fprintf(stderr, "%s is missing or has a line without %zu columns: %s\n", name.c_str(), columns, line.c_str());
    std::exit(1);
  }
  return rows;
}

std::map<std::string, std::string> ReadTwoColumns(const std::string& name) {
  std::map<std::string, std::string> table;
  for (const auto& row : ReadTable(name, 2)) {
    table[row[0]] = row[1];
  }
  return table;
}

}  // namespace

const std::map<std::string, std::string>& Cases() {
  static const auto table = ReadTwoColumns("cases.txt");
  return table;
}

const std::map<std::string, std::string>& NotCovered() {
  static const auto table = ReadTwoColumns("not_covered.txt");
  return table;
}

const std::map<std::pair<std::string, std::string>, std::string>& Gaps() {
  static const auto table = [] {
    std::map<std::pair<std::string, std::string>, std::string> gaps;
    for (const auto& row : ReadTable("gaps.txt", 3)) {
      gaps[{row[0], row[1]}] = row[2];
    }
    return gaps;
  }();
  return table;
}

std::string CaseNumberOf(const std::string& test_name) {
  constexpr size_t kPrefix = 4;
  constexpr size_t kDigits = 3;
  const bool is_case = test_name.starts_with("Case") && test_name.find('_') == kPrefix + kDigits;
  return is_case ? test_name.substr(kPrefix, kDigits) : "";
}

}  // namespace rnicd::test
