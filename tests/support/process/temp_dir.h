#pragma once

#include <cstdint>
#include <string>

namespace rnicd::test {

// A new directory under /tmp that every user may enter, with a path short enough for socket addresses.
// Lifetime: the destructor removes the directory and its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Changes the owner of the directory. Requires root.
  void GiveTo(uint32_t uid) const;

 private:
  std::string path_;
};

// Path of a copy of the program at `path` that every user may execute, whatever the modes of the build's folders are.
// The copy is made once and removed at the end of this process.
std::string ExecutableForEveryone(const std::string& path);

}  // namespace rnicd::test
