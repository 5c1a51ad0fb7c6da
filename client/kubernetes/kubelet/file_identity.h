#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rnicd::kubernetes {

// Identity of the file at a path; a socket that was created again has a different identity.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  // Modification time, because inode numbers are reused; a socket's content never changes.
  int64_t modified_seconds = 0;
  int64_t modified_nanoseconds = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Identity of the path itself: symbolic links are not followed. Empty when there is no such file.
inline std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat facts;
  if (lstat(path.c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return FileIdentity{.device = facts.st_dev,
                      .inode = facts.st_ino,
                      .modified_seconds = facts.st_mtim.tv_sec,
                      .modified_nanoseconds = facts.st_mtim.tv_nsec};
}

}  // namespace rnicd::kubernetes
