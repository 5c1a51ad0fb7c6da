#include "client/kubernetes/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/errno_status.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace rnicd::kubernetes {
namespace {

absl::Status FileError(const std::string& path, const char* call) {
  return absl::FailedPreconditionError(path + ": " + ErrnoDetail(call, errno));
}

absl::Status Refused(const std::string& path, const char* why) {
  return absl::FailedPreconditionError(path + " " + why);
}

absl::Status CheckOwnership(const std::string& path, int fd, size_t max_bytes) {
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) {
    return FileError(path, "fstat");
  }
  if (!S_ISREG(facts.st_mode)) {
    return Refused(path, "is not a regular file");
  }
  if (facts.st_uid != geteuid() && facts.st_uid != 0) {
    return Refused(path, "belongs to another user");
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refused(path, "may be written by others than its owner");
  }
  return facts.st_size > static_cast<off_t>(max_bytes) ? Refused(path, "is too large") : absl::OkStatus();
}

// The file may grow while it is read.
absl::StatusOr<std::string> ReadAll(const std::string& path, int fd, size_t max_bytes) {
  std::string content;
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno != EINTR) {
      return FileError(path, "read");
    }
    if (got == 0) {
      return content;
    }
    content.append(chunk.data(), got > 0 ? static_cast<size_t>(got) : 0);
    if (content.size() > max_bytes) {
      return Refused(path, "is too large");
    }
  }
}

absl::Status WriteAll(const std::string& path, int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      return FileError(path, "write");
    }
    content.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return absl::OkStatus();
}

// Sets the mode at the end, so that the umask does not matter.
absl::Status WriteNewFile(const std::string& path, std::string_view content, mode_t mode) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) {
    return FileError(path, "open");
  }
  RNICD_RETURN_IF_ERROR(WriteAll(path, file.get(), content));
  if (fchmod(file.get(), mode) != 0) {
    return FileError(path, "fchmod");
  }
  return fsync(file.get()) != 0 ? FileError(path, "fsync") : absl::OkStatus();
}

absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return FileError(folder, "open");
  }
  return fsync(fd.get()) != 0 ? FileError(folder, "fsync") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ReadOwnFile(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: a pipe in place of the file must not block.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) {
    return std::nullopt;
  }
  if (!file.valid()) {
    return errno == ELOOP ? Refused(path, "is a symbolic link") : FileError(path, "open");
  }
  RNICD_RETURN_IF_ERROR(CheckOwnership(path, file.get(), max_bytes));
  RNICD_ASSIGN_OR_RETURN(std::string content, ReadAll(path, file.get(), max_bytes));
  return content;
}

absl::Status ReplaceFile(const std::string& path, std::string_view content, mode_t mode) {
  const std::string prepared = path + ".new";
  // A crash may have left this file behind.
  unlink(prepared.c_str());
  absl::Status status = WriteNewFile(prepared, content, mode);
  if (status.ok() && rename(prepared.c_str(), path.c_str()) != 0) {
    status = FileError(path, "rename");
  }
  if (!status.ok()) {
    unlink(prepared.c_str());
    return status;
  }
  return SyncFolderOf(path);
}

}  // namespace rnicd::kubernetes
