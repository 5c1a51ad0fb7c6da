#pragma once

#include <string>
#include <vector>

namespace rnicd {

// A program, for --help and --version.
struct ProgramText {
  // What it does, in one sentence.
  const char* purpose;
  // "rnicd 0.1.0".
  const char* version;
  // Folder of the files that define its flags, with a slash at its end.
  const char* folder;
  // What to use in place of a flag that does not exist, by its name with underscores; empty for no advice. May be null.
  std::string (*advice)(const std::string& flag) = nullptr;
};

// Sets the flags of the program from its command line and from the files that --flagfile names; later ones win.
// Returns a line for each mistake; the flags must then not be used. Without a mistake --help and --version print and
// exit.
//
// --socket-dir means --socket_dir; --help and messages use the underscore.
//
// A file has a flag on each line. Blanks at both ends of a line, a carriage return, a byte order mark, and comments,
// which begin with "#" at the start of a line or behind a blank, belong to no value. The files follow the rule of
// base/files/safe_file.h, and name no further files.
//
// absl's own parser would exit with status 1 for a mistake, take a comment for a part of the value, and loop endlessly
// on a file that names itself.
std::vector<std::string> ReadFlags(int argc, char** argv, const ProgramText& program);

}  // namespace rnicd
