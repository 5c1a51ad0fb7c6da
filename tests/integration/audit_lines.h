#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace rnicd::test {

// The lines of an audit log. What is no line of one is a test failure: no JSON, other keys, another order of them.
class AuditLines {
 public:
  using Json = nlohmann::ordered_json;
  using Values = std::map<std::string, Json>;

  // Reads the file.
  explicit AuditLines(const std::string& path);

  const std::vector<Json>& all() const { return lines_; }
  // Those that have all of these values, in their order.
  std::vector<Json> Where(const Values& values) const;
  // The one that has them; a test failure and an empty object when there is none or more than one.
  Json Only(const Values& values) const;
  // What was done in a session, in its order: "MemoryService.CreateMr", with "!REASON" behind it where refused.
  std::vector<std::string> StoryOf(uint64_t session_id) const;

 private:
  std::vector<Json> lines_;
};

}  // namespace rnicd::test
