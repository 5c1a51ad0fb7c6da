#pragma once

#include <string>

// Paths as people write them: in flags, options and environment variables.
namespace rnicd {

// The path with one slash between its names and none at its end, without the name ".". The name ".." stays, because
// what stands before it may be a link. On Windows the text itself.
std::string CleanPath(const std::string& path);

// A folder beside another one, with its name and this suffix: "/run/rnicd-admin" for "/run/rnicd/" and "-admin". Where
// the path has no name at its end, as "." and "..", it is that of the folder itself.
std::string PathBeside(const std::string& folder, const std::string& suffix);

// An absolute path without control characters and without blanks at its ends, which an editor or a template has left
// behind.
bool IsAbsolutePath(const std::string& path);

// Whether a clean path names the folder of another one, or something in it, by its text.
bool NamesPartOf(const std::string& folder, const std::string& path);

}  // namespace rnicd
