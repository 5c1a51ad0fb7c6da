#include "tests/support/process/temp_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

namespace rnicd::test {

TempDir::TempDir() : path_("/tmp/rnicd-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr || chmod(path_.c_str(), 0755) != 0) {
    std::perror("a temporary directory for the tests");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempDir::GiveTo(uid_t uid) const {
  if (chown(path_.c_str(), uid, static_cast<gid_t>(uid)) != 0) {
    std::perror("chown of a temporary directory");
    std::abort();
  }
}

std::string ExecutableForEveryone(const std::string& path) {
  static const TempDir directory;
  static std::map<std::string, std::string> copies;
  auto [entry, missing] = copies.try_emplace(path);
  if (missing) {
    const std::filesystem::path copy = std::filesystem::path(directory.path()) / std::filesystem::path(path).filename();
    std::error_code error;
    std::filesystem::copy_file(path, copy, error);
    std::filesystem::permissions(copy, static_cast<std::filesystem::perms>(0755), error);
    entry->second = error ? path : copy.string();
  }
  return entry->second;
}

}  // namespace rnicd::test
