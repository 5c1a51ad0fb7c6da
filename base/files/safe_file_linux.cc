#include "base/files/safe_file_linux.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "base/files/safe_file.h"
#include "base/status.h"

namespace rnicd {
namespace {

// Without O_NONBLOCK a pipe in the file's place would block the process until another one opens it.
constexpr int kOpenFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr mode_t kNewFileMode = S_IRUSR | S_IWUSR;

absl::Status Refused(const std::string& path, const std::string& cause) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", cause));
}

absl::Status NotARegularFile(const std::string& path) { return Refused(path, "is not a regular file"); }

absl::Status OpenError(const std::string& path, int flags, int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(absl::StrCat(path, ": ", ErrnoDetail("open", error_number)));
    case ELOOP:
      return (flags & O_NOFOLLOW) != 0 ? Refused(path, "is a symbolic link") : FileError(path, "open", error_number);
    // A directory; a socket, or a pipe without a reader.
    case EISDIR:
    case ENXIO:
      return NotARegularFile(path);
    default:
      return Refused(path, absl::StrCat(ErrnoDetail("open", error_number),
                                        WhyDenied(path, error_number, (flags & O_WRONLY) != 0 ? W_OK : R_OK)));
  }
}

absl::StatusOr<UniqueFd> OpenChecked(const std::string& path, int flags) {
  UniqueFd file(open(path.c_str(), kOpenFlags | flags, kNewFileMode));
  if (!file.valid()) {
    return OpenError(path, flags, errno);
  }
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0) {
    return FileError(path, "fstat", errno);
  }
  RNICD_RETURN_IF_ERROR(CheckSafeFile(path, facts, geteuid()));
  return file;
}

// Reads to the end instead of relying on the size that fstat gave: the file may grow meanwhile.
absl::StatusOr<std::string> ReadAll(const std::string& path, int fd, size_t bytes_max) {
  std::string content;
  std::array<char, 65536> chunk;
  while (content.size() <= bytes_max) {
    const ssize_t count = read(fd, chunk.data(), chunk.size());
    if (count == 0) {
      return content;
    }
    if (count > 0) {
      content.append(chunk.data(), static_cast<size_t>(count));
    } else if (errno != EINTR) {
      return FileError(path, "read", errno);
    }
  }
  return Refused(path, absl::StrCat("is longer than ", bytes_max, " bytes"));
}

}  // namespace

absl::StatusOr<std::string> ReadSafeFile(const std::string& path, const SafeFileOptions& options) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd file, OpenChecked(path, O_RDONLY | (options.follow_link ? 0 : O_NOFOLLOW)));
  return ReadAll(path, file.get(), options.bytes_max);
}

absl::StatusOr<UniqueFd> OpenSafeFileForAppend(const std::string& path) {
  return OpenChecked(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW);
}

absl::Status CheckSafeFile(const std::string& path, const struct stat& facts, uid_t user) {
  if (!S_ISREG(facts.st_mode)) {
    return NotARegularFile(path);
  }
  if (facts.st_uid != 0 && facts.st_uid != user) {
    return Refused(
        path, absl::StrCat("is owned by uid ", facts.st_uid, ", which is neither root nor the user of this process"));
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refused(path, "is writable by group or others");
  }
  return absl::OkStatus();
}

std::string WhyDenied(const std::string& path, int error_number, int wanted) {
  const auto allowed = [](const std::string& name, int mode) {
    return faccessat(AT_FDCWD, name.c_str(), mode, AT_EACCESS) == 0;
  };
  const std::string folder = path.substr(0, path.rfind('/') + 1) + ".";
  if (error_number != EACCES || !(allowed(path, F_OK) ? allowed(path, wanted) : allowed(folder, W_OK | X_OK))) {
    return "";
  }
  return ", though the permissions allow it: the sandbox knows only the folders of the start, so restart after one was "
         "replaced, mounted again, or put behind a link";
}

absl::Status FileError(const std::string& path, std::string_view call, int error_number) {
  return Refused(path, ErrnoDetail(call, error_number));
}

}  // namespace rnicd
