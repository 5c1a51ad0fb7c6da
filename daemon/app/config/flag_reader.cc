#include "daemon/app/config/flag_reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/paths.h"

namespace rnicd::app {

uint64_t FlagReader::Number(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest) {
  const int64_t value = absl::GetFlag(flag);
  if (value < lowest || value > highest) {
    AddError(std::string(flag.Name()), highest == kUnbounded
                                           ? absl::StrCat("must be ", lowest, " or more, not ", value)
                                           : absl::StrCat("must be ", lowest, " to ", highest, ", not ", value));
    return static_cast<uint64_t>(lowest);
  }
  return static_cast<uint64_t>(value);
}

std::chrono::milliseconds FlagReader::Milliseconds(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest) {
  return std::chrono::milliseconds(Number(flag, lowest, highest));
}

uint32_t FlagReader::Bits(const absl::Flag<std::string>& flag, uint32_t known) {
  uint32_t bits = 0;
  const std::string text = absl::GetFlag(flag);
  if (!(absl::SimpleAtoi(text, &bits) || absl::SimpleHexAtoi(text, &bits)) || (bits & ~known) != 0) {
    AddError(std::string(flag.Name()), absl::StrCat("must be bits of 0x", absl::Hex(known), ", not \"", text, "\""));
  }
  return bits;
}

std::string FlagReader::AbsolutePath(const absl::Flag<std::string>& flag) {
  const std::string path = absl::GetFlag(flag);
  if (!path.empty() && !IsAbsolutePath(path)) {
    AddError(std::string(flag.Name()),
             absl::StrCat("must be an absolute path or empty, not \"", absl::CHexEscape(path), "\""));
  }
  return CleanPath(path);
}

std::function<bool()> FlagReader::PresenceOf(const absl::Flag<std::string>& flag) {
  std::string path = AbsolutePath(flag);
  if (path.empty()) {
    return nullptr;
  }
  return [path = std::move(path)] {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  };
}

uint32_t FlagReader::Mode(const absl::Flag<std::string>& flag) {
  const std::string text = absl::GetFlag(flag);
  unsigned mode = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc() || rest != end || mode > 0777) {
    AddError(std::string(flag.Name()), absl::StrCat("must be an octal mode up to 0777, not \"", text, "\""));
  }
  return mode;
}

std::vector<std::string> FlagReader::Names(const absl::Flag<std::string>& flag) {
  const std::string text = absl::GetFlag(flag);
  if (text.empty()) {
    return {};
  }
  std::vector<std::string> names = absl::StrSplit(text, ',');
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (twice || sorted.front().empty() || text.find_first_of(" \t/") != std::string::npos) {
    AddError(std::string(flag.Name()),
             absl::StrCat("must be names between commas, each once and without spaces, not \"", text, "\""));
  }
  return names;
}

void FlagReader::AddError(const std::string& flag, const std::string& what) {
  errors_.push_back(absl::StrCat("--", flag, ": ", what));
}

}  // namespace rnicd::app
