#pragma once

#include <sys/types.h>

#include <string>

namespace rnicd::test {

// A directory of its own under /tmp, with a path short enough for socket addresses, that every user may enter.
// Lifetime: removed with everything in it when this goes.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Gives the directory to another user. Only root can.
  void GiveTo(uid_t uid) const;

 private:
  std::string path_;
};

// The program at `path` where every user may execute it, whatever the modes of the folders of the build are: a copy,
// made once and removed at the end of this process.
std::string ExecutableForEveryone(const std::string& path);

}  // namespace rnicd::test
