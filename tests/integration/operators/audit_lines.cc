#include "tests/integration/operators/audit_lines.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

namespace rnicd::test {
namespace {

const std::vector<std::string> kKeys = {
    "time",         "what", "result", "reason",    "field", "pid",       "uid",        "gid",    "sid", "pod_uid",
    "container_id", "role", "tenant", "namespace", "pod",   "container", "session_id", "object", "note"};
const std::vector<std::string> kTimes = {"times", "first", "last"};
const std::vector<std::string> kLeftOutKeys = {"time", "what", "owner", "count", "first", "last"};
const std::vector<std::string> kFigures = {"limit", "used", "requested"};

void ExpectTheKeys(const AuditLines::Json& line) {
  const bool is_left_out = line.value("what", "") == "audit.left_out";
  std::vector<std::string> expected = is_left_out ? kLeftOutKeys : kKeys;
  if (line.contains("limit")) {
    expected.insert(std::find(expected.begin(), expected.end(), "pid"), kFigures.begin(), kFigures.end());
  }
  if (line.contains("devices")) {
    expected.insert(std::find(expected.begin(), expected.end(), "session_id"), "devices");
  }
  if (line.contains("times")) {
    expected.insert(expected.end(), kTimes.begin(), kTimes.end());
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : line.items()) {
    keys.push_back(key);
  }
  EXPECT_EQ(keys, expected) << line;
}

bool Has(const AuditLines::Json& line, const AuditLines::Values& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& entry) {
    return line.contains(entry.first) && line[entry.first] == entry.second;
  });
}

}  // namespace

AuditLines::AuditLines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << " cannot be read";
  for (std::string text; std::getline(file, text);) {
    Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_object()) {
      ExpectTheKeys(line);
      lines_.push_back(std::move(line));
    } else {
      ADD_FAILURE() << "no line of an audit log: " << text;
    }
  }
}

std::vector<AuditLines::Json> AuditLines::Where(const Values& values) const {
  std::vector<Json> found;
  std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(found),
               [&](const Json& line) { return Has(line, values); });
  return found;
}

AuditLines::Json AuditLines::Only(const Values& values) const {
  const std::vector<Json> found = Where(values);
  if (found.size() == 1) {
    return found.front();
  }
  std::string wanted;
  for (const auto& [key, value] : values) {
    wanted += " " + key + "=" + value.dump();
  }
  ADD_FAILURE() << found.size() << " lines with" << wanted;
  return Json::object();
}

uint64_t AuditLines::Decisions(const Values& values) const {
  uint64_t sum = 0;
  for (const Json& line : Where(values)) {
    sum += line.value("times", line.value("count", uint64_t{1}));
  }
  return sum;
}

std::vector<std::string> AuditLines::StoryOf(uint64_t session_id) const {
  std::vector<std::string> story;
  for (const Json& line : Where({{"session_id", std::to_string(session_id)}})) {
    const std::string reason = line.value("reason", "");
    story.push_back(line.value("what", "") + (reason.empty() ? "" : "!" + reason));
  }
  return story;
}

}  // namespace rnicd::test
