#include "absl/strings/str_cat.h"
#include "base/files/paths.h"

namespace rnicd {

std::string CleanPath(const std::string& path) { return std::string(path); }

std::string PathBeside(const std::string& folder, const std::string& suffix) { return absl::StrCat(folder, suffix); }

}  // namespace rnicd
