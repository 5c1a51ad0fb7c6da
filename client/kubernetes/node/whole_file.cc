#include "client/kubernetes/node/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/files/safe_file.h"
#include "base/files/safe_file_linux.h"
#include "base/files/unique_fd.h"
#include "base/status.h"

namespace rnicd::kubernetes {
namespace {

absl::Status WriteAll(const std::string& path, int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      return FileError(path, "write", errno);
    }
    content.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& path, std::string_view content) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) {
    return FileError(path, "open", errno);
  }
  RNICD_RETURN_IF_ERROR(WriteAll(path, file.get(), content));
  return fsync(file.get()) != 0 ? FileError(path, "fsync", errno) : absl::OkStatus();
}

absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return FileError(folder, "open", errno);
  }
  return fsync(fd.get()) != 0 ? FileError(folder, "fsync", errno) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ReadOwnFile(const std::string& path, size_t max_bytes) {
  absl::StatusOr<std::string> content = ReadSafeFile(path, {.bytes_max = max_bytes});
  if (absl::IsNotFound(content.status())) {
    return std::nullopt;
  }
  return content;
}

absl::Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string prepared = path + ".new";
  // A crash may have left this file behind.
  unlink(prepared.c_str());
  absl::Status status = WriteNewFile(prepared, content);
  if (status.ok() && rename(prepared.c_str(), path.c_str()) != 0) {
    status = FileError(path, "rename", errno);
  }
  if (!status.ok()) {
    unlink(prepared.c_str());
    return status;
  }
  return SyncFolderOf(path);
}

}  // namespace rnicd::kubernetes
