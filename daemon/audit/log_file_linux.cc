#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/safe_file_linux.h"
#include "daemon/audit/log_file.h"

namespace rnicd::audit {
namespace {

FileId IdOf(const struct stat& facts) { return {.volume = facts.st_dev, .number = facts.st_ino}; }

}  // namespace

absl::StatusOr<FileId> IdOfOpenFile(int file, const std::string& path) {
  struct stat facts = {};
  if (fstat(file, &facts) != 0) {
    return FileError(path, "fstat", errno);
  }
  return IdOf(facts);
}

bool PathHasFile(const std::string& path, const FileId& id) {
  struct stat facts = {};
  return lstat(path.c_str(), &facts) == 0 && IdOf(facts) == id;
}

bool HasAName(int file) {
  struct stat facts = {};
  return fstat(file, &facts) == 0 && facts.st_nlink > 0;
}

absl::StatusOr<bool> EndsWithinALine(int file, const std::string& path) {
  struct stat facts = {};
  if (fstat(file, &facts) != 0) {
    return FileError(path, "fstat", errno);
  }
  char last = '\n';
  if (facts.st_size > 0 && pread(file, &last, 1, facts.st_size - 1) < 0) {
    return FileError(path, "pread", errno);
  }
  return last != '\n';
}

absl::Status WriteAtEnd(int file, std::string_view text, const std::string& path, size_t& written) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count > 0) {
      written += static_cast<size_t>(count);
      text.remove_prefix(static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return FileError(path, "write", count == 0 ? ENOSPC : errno);
    }
  }
  return absl::OkStatus();
}

bool CutOffEnd(int file, size_t bytes) {
  struct stat facts = {};
  const auto excess = static_cast<off_t>(bytes);
  return fstat(file, &facts) == 0 && facts.st_size >= excess && ftruncate(file, facts.st_size - excess) == 0;
}

}  // namespace rnicd::audit
