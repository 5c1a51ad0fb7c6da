#include "daemon/audit/append_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/safe_file.h"
#include "base/safe_file_linux.h"
#include "base/status.h"

namespace rnicd::audit {

absl::StatusOr<AppendFile> AppendFile::Open(std::string path) {
  AppendFile file(std::move(path));
  RNICD_RETURN_IF_ERROR(file.Reopen());
  return file;
}

absl::Status AppendFile::Reopen() {
  RNICD_ASSIGN_OR_RETURN(UniqueFd file, OpenSafeFileForAppend(path_));
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0) {
    return FileError(path_, "fstat", errno);
  }
  file_ = std::move(file);
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  torn_ = false;
  return absl::OkStatus();
}

absl::Status AppendFile::FollowPath() {
  struct stat facts = {};
  const bool same = lstat(path_.c_str(), &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_;
  return same ? absl::OkStatus() : Reopen();
}

bool AppendFile::HasAName() const {
  struct stat facts = {};
  return fstat(file_.get(), &facts) == 0 && facts.st_nlink > 0;
}

AppendFile::Appended AppendFile::Append(std::string_view text) {
  Appended outcome;
  outcome.status = FollowPath();
  if (!outcome.status.ok() && !HasAName()) {
    return outcome;
  }
  size_t written = 0;
  if (torn_) {
    if (absl::Status status = WriteAll("\n", written); !status.ok()) {
      outcome.status = status;
      return outcome;
    }
    torn_ = false;
    written = 0;
  }
  if (absl::Status status = WriteAll(text, written); !status.ok()) {
    outcome.status = status;
  }
  outcome.bytes = text.substr(0, written).rfind('\n') + 1;
  Truncate(written - outcome.bytes);
  return outcome;
}

absl::Status AppendFile::WriteAll(std::string_view text, size_t& written) const {
  while (written < text.size()) {
    const ssize_t count = write(file_.get(), text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      return FileError(path_, "write", count == 0 ? ENOSPC : errno);
    }
  }
  return absl::OkStatus();
}

// Truncates the file by a partly written line. An append-only file keeps it, and the next line begins after it.
void AppendFile::Truncate(size_t bytes) {
  if (bytes == 0) {
    return;
  }
  struct stat facts = {};
  const auto excess = static_cast<off_t>(bytes);
  torn_ =
      fstat(file_.get(), &facts) != 0 || facts.st_size < excess || ftruncate(file_.get(), facts.st_size - excess) != 0;
}

}  // namespace rnicd::audit
