// Opening a folder, before the daemon serves. soft_folder_run_linux.cc has the thread.

#include "provider/soft/net/soft_folder_linux.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "base/status.h"

namespace rnicd::provider {
namespace {

absl::Status FolderError(const char* call, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("soft network ", path, ": ", ErrnoDetail(call, errno)));
}

absl::StatusOr<sockaddr_un> SocketAddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError(absl::StrCat("soft network ", path, ": is too long for a socket"));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// Sockets that others put here would be linked to. Locked, because of two daemons one links itself to the other.
absl::StatusOr<UniqueFd> LockFolder(const std::string& folder) {
  UniqueFd file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) {
    return FolderError("open", folder);
  }
  if (facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("soft network ", folder, ": must belong to this user, and nobody else may write to it"));
  }
  while (flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      return FolderError("flock", folder);
    }
  }
  return file;
}

// The addresses that the sockets in the folder have.
absl::StatusOr<std::vector<IpAddress>> HostsIn(const std::string& folder) {
  std::vector<IpAddress> hosts;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (const std::optional<IpAddress> host = IpAddress::FromText(entry->path().filename().string())) {
      hosts.push_back(*host);
    }
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat("soft network ", folder, ": ", error.message()));
  }
  return hosts;
}

absl::StatusOr<UniqueFd> NewSocket(const std::string& path) {
  UniqueFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.valid()) {
    return FolderError("socket", path);
  }
  return made;
}

std::string PathIn(const std::string& folder, const IpAddress& host) {
  return absl::StrCat(folder, "/", host.ToText());
}

}  // namespace

bool SoftFolder::IsOwnUser(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

absl::StatusOr<std::shared_ptr<SoftFolder>> SoftFolder::Open(const std::string& folder, std::vector<IpAddress> hosts,
                                                             Patience patience) {
  const std::shared_ptr<SoftFolder> opened(new SoftFolder(std::move(hosts), patience));
  opened->epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  opened->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!opened->epoll_.valid() || !opened->stop_.valid()) {
    return FolderError("epoll_create1, eventfd", folder);
  }
  RNICD_RETURN_IF_ERROR(opened->Join(folder));
  return opened;
}

absl::Status SoftFolder::Join(const std::string& folder) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(folder));
  RNICD_ASSIGN_OR_RETURN(const std::vector<IpAddress> others, HostsIn(folder));
  for (const IpAddress& host : others) {
    RNICD_RETURN_IF_ERROR(LinkTo(PathIn(folder, host), host));
  }
  path_ = PathIn(folder, hosts_.front());
  if (const absl::Status listening = Listen(); !listening.ok()) {
    path_.clear();  // It is not this daemon's.
    return listening;
  }
  return absl::OkStatus();
}

// The socket of a daemon that was killed is removed. One that does not accept for now is left alone.
absl::Status SoftFolder::LinkTo(const std::string& path, const IpAddress& host) {
  RNICD_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddressOf(path));
  RNICD_ASSIGN_OR_RETURN(UniqueFd socket, NewSocket(path));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == ECONNREFUSED && unlink(path.c_str()) != 0) {
      return FolderError("unlink", path);
    }
    return absl::OkStatus();
  }
  if (host == hosts_.front()) {
    return absl::FailedPreconditionError(
        absl::StrCat("soft network ", path, ": another daemon has this address; see --soft_addresses"));
  }
  const std::shared_ptr<SoftLink> link = IsOwnUser(socket.get()) ? AddLink(std::move(socket)) : nullptr;
  if (link != nullptr) {
    MutexLock lock(mutex_);
    routes_.emplace(host, link->number());
  }
  return absl::OkStatus();
}

absl::Status SoftFolder::Listen() {
  RNICD_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddressOf(path_));
  RNICD_ASSIGN_OR_RETURN(listener_, NewSocket(path_));
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = kListenerKey}};
  epoll_event stop = {.events = EPOLLIN, .data = {.u64 = kStopKey}};
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path_.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(listener_.get(), SOMAXCONN) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &stop) != 0) {
    return FolderError("bind, listen", path_);
  }
  return absl::OkStatus();
}

std::shared_ptr<SoftLink> SoftFolder::AddLink(UniqueFd socket) {
  std::shared_ptr<SoftLink> link;
  {
    MutexLock lock(mutex_);
    if (links_.size() >= kLinksMax) {
      return nullptr;
    }
    link = std::make_shared<SoftLink>(++last_number_, std::move(socket), epoll_.get());
    links_.emplace(link->number(), link);
  }
  link->heard_at = ticks_;
  if (!link->Watch()) {
    MutexLock lock(mutex_);
    links_.erase(link->number());
    return nullptr;
  }
  link->Send(FrameText(SoftHello{.hosts = hosts_}));
  return link;
}

}  // namespace rnicd::provider
