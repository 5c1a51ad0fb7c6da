#include "base/files/paths.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"

namespace rnicd {

bool IsAbsolutePath(const std::string& path) {
  const bool has_control = std::any_of(path.begin(), path.end(), [](char one) { return absl::ascii_iscntrl(one); });
  return std::filesystem::path(path).is_absolute() && !has_control && absl::StripAsciiWhitespace(path) == path;
}

bool NamesPartOf(const std::string& folder, const std::string& path) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

}  // namespace rnicd
