#include "client/kubernetes/file_identity.h"

#include <sys/stat.h>

namespace rnicd::kubernetes {

std::optional<FileIdentity> IdentityOf(const std::string& path) {
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
