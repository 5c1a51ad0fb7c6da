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
#include "base/files/safe_file_linux.h"
#include "base/status.h"

namespace rnicd::transport {
namespace {

// Connections that wait to be accepted: as many as the kernel allows, which takes net.core.somaxconn for a larger
// number. A connect that does not block, such as gRPC's, fails when so many wait, so in a storm of them a longer queue
// lets more newcomers in, at some 10 microseconds for each that waits before them.
constexpr int kListenBacklog = INT_MAX;

absl::Status Failed(const char* call, const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat(call, " ", path, ": ", strerror(error), WhyDenied(path, error, R_OK | W_OK)));
}

std::string LockPath(const std::string& directory) { return directory + "/lock"; }

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

// Fails where another daemon has it: a lock belongs to the open file, so that a copy of its holder's has it already.
absl::Status Lock(int lock, const std::string& directory) {
  if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
    return absl::OkStatus();
  }
  return errno == EWOULDBLOCK ? absl::FailedPreconditionError(absl::StrCat("another rnicd serves on ", directory))
                              : Failed("flock", LockPath(directory), errno);
}

// The lock of the directory, by its path.
absl::StatusOr<UniqueFd> TakeLock(const std::string& directory) {
  const std::string path = LockPath(directory);
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!lock.valid()) {
    return Failed("open", path, errno);
  }
  RNICD_RETURN_IF_ERROR(Lock(lock.get(), directory));
  return lock;
}

// The file that has this name, with its mode set. Not by the name, which may be another file's, or a link, by then.
absl::StatusOr<SocketFile> SetMode(const std::string& path, mode_t mode) {
  const UniqueFd file(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) {
    return Failed("open", path, errno);
  }
  if (!S_ISSOCK(facts.st_mode)) {
    return Failed("open", path, ENOTSOCK);
  }
  if (chmod(absl::StrCat("/proc/self/fd/", file.get()).c_str(), mode) != 0) {
    return Failed("chmod", path, errno);
  }
  return SocketFile{.device = facts.st_dev, .inode = facts.st_ino};
}

}  // namespace

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

absl::Status SocketDirectory::Make(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    // mkdir masks the mode; no other process can have used the directory yet.
    return chmod(path.c_str(), mode) == 0 ? absl::OkStatus() : Failed("chmod", path, errno);
  }
  return errno == EEXIST ? absl::OkStatus() : Failed("mkdir", path, errno);
}

absl::StatusOr<SocketDirectory> SocketDirectory::Claim(const std::string& path, mode_t mode) {
  RNICD_RETURN_IF_ERROR(Make(path, mode));
  RNICD_RETURN_IF_ERROR(CheckTrusted(path));
  RNICD_ASSIGN_OR_RETURN(UniqueFd lock, TakeLock(path));
  return SocketDirectory(path, mode, std::move(lock));
}

absl::StatusOr<SocketDirectory> SocketDirectory::Adopt(const std::string& path, mode_t mode, UniqueFd lock) {
  RNICD_RETURN_IF_ERROR(CheckTrusted(path));
  RNICD_RETURN_IF_ERROR(Lock(lock.get(), path));
  SocketDirectory directory(path, mode, std::move(lock));
  RNICD_RETURN_IF_ERROR(directory.KeepClaim());
  return directory;
}

absl::StatusOr<SocketDirectory> SocketDirectory::Sub(const std::string& name, mode_t mode) const {
  SocketDirectory sub(absl::StrCat(path_, "/", name), mode, UniqueFd());
  RNICD_RETURN_IF_ERROR(sub.KeepClaim());
  return sub;
}

// The lock tells of the directory as well: its file is in no other, and its number is taken as long as it is open.
absl::Status SocketDirectory::KeepClaim() {
  if (!lock_.valid()) {
    RNICD_RETURN_IF_ERROR(Make(path_, mode_));
    return CheckTrusted(path_);
  }
  struct stat held = {};
  struct stat named = {};
  if (fstat(lock_.get(), &held) == 0 && lstat(LockPath(path_).c_str(), &named) == 0 && held.st_dev == named.st_dev &&
      held.st_ino == named.st_ino) {
    return absl::OkStatus();
  }
  // Not the path, which others read at the same time.
  RNICD_ASSIGN_OR_RETURN(SocketDirectory again, Claim(path_, mode_));
  lock_ = std::move(again.lock_);
  return absl::OkStatus();
}

absl::StatusOr<NamedListener> SocketDirectory::Listen(const std::string& name, int type, mode_t mode) const {
  const std::string final_path = absl::StrCat(path_, "/", name);
  const std::string first_path = final_path + kUnfinishedSuffix;
  RNICD_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(first_path));
  NamedListener named;
  named.listener = UniqueFd(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!named.listener.valid()) {
    return Failed("socket", first_path, errno);
  }
  unlink(first_path.c_str());
  if (bind(named.listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("bind", first_path, errno);
  }
  absl::Status failure;
  if (auto file = SetMode(first_path, mode); file.ok()) {
    named.file = *file;
  } else {
    failure = file.status();
  }
  if (failure.ok() && listen(named.listener.get(), kListenBacklog) != 0) {
    failure = Failed("listen", first_path, errno);
  }
  if (failure.ok() && rename(first_path.c_str(), final_path.c_str()) != 0) {
    failure = Failed("rename", final_path, errno);
  }
  if (!failure.ok()) {
    unlink(first_path.c_str());
    return failure;
  }
  return named;
}

absl::Status SocketDirectory::ListenAgain(const std::string& name, const NamedListener& named, mode_t mode) const {
  const std::string path = absl::StrCat(path_, "/", name);
  if (listen(named.listener.get(), kListenBacklog) != 0) {
    return Failed("listen", path, errno);
  }
  return Has(name, named.file) ? SetMode(path, mode).status() : absl::OkStatus();
}

absl::StatusOr<UniqueFd> SocketDirectory::CopyLock() const {
  UniqueFd copy(fcntl(lock_.get(), F_DUPFD_CLOEXEC, 0));
  return copy.valid() ? absl::StatusOr<UniqueFd>(std::move(copy)) : Failed("fcntl", LockPath(path_), errno);
}

bool SocketDirectory::Has(const std::string& name, const SocketFile& file) const {
  struct stat facts = {};
  return lstat(absl::StrCat(path_, "/", name).c_str(), &facts) == 0 &&
         SocketFile{.device = facts.st_dev, .inode = facts.st_ino} == file;
}

void SocketDirectory::Remove(const std::string& name, const SocketFile& file) const {
  if (Has(name, file)) {
    unlink(absl::StrCat(path_, "/", name).c_str());
  }
}

}  // namespace rnicd::transport
