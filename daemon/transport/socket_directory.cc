#include "daemon/transport/socket_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rnicd::transport {
namespace {

// Connections that wait to be accepted: as many as the kernel allows, which takes net.core.somaxconn for a larger
// number. A connect that does not block, such as gRPC's, fails when so many wait, so in a storm of them a longer queue
// lets more newcomers in, at some 10 microseconds for each that waits before them.
constexpr int kListenBacklog = INT_MAX;

absl::Status Failed(const char* call, const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat(call, " ", path, ": ", strerror(error)));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path is longer than ", sizeof(address.sun_path) - 1, " bytes: ", path));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

absl::Status CheckTrusted(const std::string& path) {
  struct stat directory = {};
  if (lstat(path.c_str(), &directory) != 0) {
    return Failed("lstat", path, errno);
  }
  if (S_ISLNK(directory.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is a symbolic link; name the directory behind it, which clients must use as well"));
  }
  const bool ours = directory.st_uid == geteuid() || directory.st_uid == 0;
  if (!S_ISDIR(directory.st_mode) || !ours || (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": must be a directory of this user or of root that nobody else can write to"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SocketDirectory> SocketDirectory::Claim(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    // mkdir masks the mode; no other process can have used the directory yet.
    if (chmod(path.c_str(), mode) != 0) {
      return Failed("chmod", path, errno);
    }
  } else if (errno != EEXIST) {
    return Failed("mkdir", path, errno);
  }
  absl::Status trusted = CheckTrusted(path);
  if (!trusted.ok()) {
    return trusted;
  }
  const std::string lock_path = path + "/lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    return Failed("open", lock_path, errno);
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? absl::FailedPreconditionError(absl::StrCat("another rnicd serves on ", path))
                                : Failed("flock", lock_path, errno);
  }
  return SocketDirectory(path, std::move(lock));
}

absl::StatusOr<UniqueFd> SocketDirectory::Listen(const std::string& name, int type, mode_t mode) const {
  const std::string final_path = absl::StrCat(path_, "/", name);
  const std::string first_path = final_path + ".new";
  const absl::StatusOr<sockaddr_un> address = AddressOf(first_path);
  if (!address.ok()) {
    return address.status();
  }
  UniqueFd listener(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) {
    return Failed("socket", first_path, errno);
  }
  unlink(first_path.c_str());
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return Failed("bind", first_path, errno);
  }
  if (chmod(first_path.c_str(), mode) != 0) {
    return Failed("chmod", first_path, errno);
  }
  if (listen(listener.get(), kListenBacklog) != 0) {
    return Failed("listen", first_path, errno);
  }
  if (rename(first_path.c_str(), final_path.c_str()) != 0) {
    return Failed("rename", final_path, errno);
  }
  return listener;
}

void SocketDirectory::Remove(const std::string& name) const { unlink(absl::StrCat(path_, "/", name).c_str()); }

}  // namespace rnicd::transport
