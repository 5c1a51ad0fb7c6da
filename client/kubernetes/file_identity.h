#pragma once

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
std::optional<FileIdentity> IdentityOf(const std::string& path);

}  // namespace rnicd::kubernetes
