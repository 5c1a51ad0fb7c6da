#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/paths.h"

namespace rnicd {

std::string CleanPath(const std::string& path) {
  const std::vector<std::string> names =
      absl::StrSplit(path, '/', [](absl::string_view name) { return !name.empty() && name != "."; });
  if (path.starts_with('/')) {
    return absl::StrCat("/", absl::StrJoin(names, "/"));
  }
  return names.empty() && !path.empty() ? "." : absl::StrJoin(names, "/");
}

std::string PathBeside(const std::string& folder, const std::string& suffix) {
  std::string clean = CleanPath(folder);
  const std::filesystem::path name = std::filesystem::path(clean).filename();
  if (name == "." || name == "..") {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(clean, error);
    clean = error ? clean : real.string();
  }
  return absl::StrCat(clean, suffix);
}

}  // namespace rnicd
