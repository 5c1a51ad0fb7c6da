#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::sandbox {

// Paths that this process may use, each with all below it: the folder that has the path now, and no other that gets it
// later. One that does not exist is skipped.
struct PathRules {
  // Files are read, folders listed.
  std::vector<std::string> read;
  // In addition files, folders and sockets are made, files and sockets written, renamed and removed.
  std::vector<std::string> write;
  // Devices: read, written, and given commands.
  std::vector<std::string> devices;
};

// Restricts the calling thread, and every thread that it starts, to these paths and to those of the system that every
// process needs: its libraries and their settings, /proc and /sys, all for reading. Files that are open stay open.
// Returns the version of Landlock in force; 0 where the kernel has none, and in a build with a sanitizer, which writes
// its reports wherever its options say: then nothing is restricted.
// Lifetime: until the process ends. Needs no_new_privs.
// Errors: kInternal with the step and its errno.
// Source: landlock(7), landlock_create_ruleset(2), landlock_add_rule(2), landlock_restrict_self(2).
absl::StatusOr<int> RestrictPaths(const PathRules& rules);

}  // namespace rnicd::sandbox
