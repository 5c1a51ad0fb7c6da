#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rnicd::kubernetes {

// Which file stands at a path: a socket that was made anew is another one.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  // Inodes are used again; a socket's content never changes.
  int64_t modified_seconds = 0;
  int64_t modified_nanoseconds = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Of the path itself, no link followed. Nothing when there is no such file.
std::optional<FileIdentity> IdentityOf(const std::string& path);

}  // namespace rnicd::kubernetes
