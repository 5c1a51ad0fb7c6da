#include "daemon/metrics/port_statistics.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include "daemon/metrics/names.h"

namespace rnicd::metrics {
namespace {

// The file's first word; empty when there is none.
std::string FirstWord(const std::filesystem::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// "4: ACTIVE".
std::string ReadState(const std::filesystem::path& path) {
  std::string number;
  std::string name;
  std::ifstream(path) >> number >> name;
  name = Lower(name);
  const bool known = std::find(std::begin(kPortStates), std::end(kPortStates), name) != std::end(kPortStates);
  return known ? name : "unknown";
}

std::optional<uint64_t> ReadCount(const std::filesystem::path& path) {
  const std::string word = FirstWord(path);
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  return !word.empty() && error == std::errc() && end == word.data() + word.size() ? std::optional(count)
                                                                                   : std::nullopt;
}

// True for the settings that are in hw_counters besides the counts.
bool IsSetting(const std::string& name) { return name == "lifespan"; }

void ReadFolder(const std::filesystem::path& folder, std::map<std::string, uint64_t>& counts) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const std::optional<uint64_t> count = ReadCount(entry->path()); count.has_value() && !IsSetting(name)) {
      counts.emplace(name, *count);
    }
  }
}

}  // namespace

PortStatistics ReadPortStatistics(const std::string& folder) {
  std::map<std::string, uint64_t> counts;
  ReadFolder(folder + "/counters", counts);
  ReadFolder(folder + "/hw_counters", counts);
  return {.state = ReadState(folder + "/state"), .counts = {counts.begin(), counts.end()}};
}

}  // namespace rnicd::metrics
