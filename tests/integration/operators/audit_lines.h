#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace rnicd::test {

// The lines of an audit log. A malformed line is a test failure: invalid JSON, other keys, or keys in another order.
class AuditLines {
 public:
  using Json = nlohmann::ordered_json;
  using Values = std::map<std::string, Json>;

  // Reads the file.
  explicit AuditLines(const std::string& path);

  const std::vector<Json>& all() const { return lines_; }
  // The lines that have all of these values, in order.
  std::vector<Json> Where(const Values& values) const;
  // The only line that has these values; a test failure and an empty object if there is none or more than one.
  Json Only(const Values& values) const;
  // Number of decisions that the lines with all of these values stand for.
  uint64_t Decisions(const Values& values) const;
  // The calls of a session, in order: "MemoryService.CreateMr", followed by "!REASON" if refused.
  std::vector<std::string> StoryOf(uint64_t session_id) const;

 private:
  std::vector<Json> lines_;
};

}  // namespace rnicd::test
