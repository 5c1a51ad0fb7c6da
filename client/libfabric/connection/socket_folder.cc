#include "client/libfabric/connection/socket_folder.h"

#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

constexpr uint16_t kFirstPort = 32768;
constexpr uint16_t kPorts = 28232;
constexpr int kBacklog = 4096;

bool UnixAddress(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof(address->sun_path)) {
    return false;
  }
  std::memcpy(address->sun_path, path.data(), path.size());
  return true;
}

uint64_t Random() {
  uint64_t number = 0;
  (void)!getrandom(&number, sizeof(number), 0);
  return number;
}

// 0 or a negative errno value, of which -ENOENT means that nobody listens.
int ConnectTo(const std::string& path, UniqueFd* connected) {
  sockaddr_un address;
  if (!UnixAddress(path, &address)) {
    return -ENAMETOOLONG;
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return -errno;
  }
  *connected = std::move(socket);
  return 0;
}

// A listening socket under a name that nobody asks for. A socket has its real name only after that: one that refuses
// connections belongs to a process that has ended, at any time.
int ListenUnderRandomName(const std::string& folder, std::string* path, UniqueFd* listening) {
  char name[32];
  std::snprintf(name, sizeof(name), "/.%016llx", static_cast<unsigned long long>(Random()));
  *path = folder + name;
  sockaddr_un address;
  if (!UnixAddress(*path, &address)) {
    return -ENAMETOOLONG;
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return -errno;
  }
  if (listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    unlink(path->c_str());
    return -error;
  }
  *listening = std::move(socket);
  return 0;
}

int Rename(const std::string& from, const std::string& to) {
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

// Removes the socket of a process that has ended. One at a time does so in a folder, because between the question and
// the removal another could have put its own there; when another is at it, the name counts as taken.
bool RemoveIfStale(const std::string& folder, const std::string& path) {
  const UniqueFd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return false;
  }
  struct stat found;
  UniqueFd connected;
  return lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) && ConnectTo(path, &connected) == -ECONNREFUSED &&
         unlink(path.c_str()) == 0;
}

int TakeName(const std::string& folder, const std::string& from, const std::string& path) {
  const int result = Rename(from, path);
  return result == -EEXIST && RemoveIfStale(folder, path) ? Rename(from, path) : result;
}

}  // namespace

std::string SocketFolder() {
  static const int defined = fi_param_define(&Provider(), "socket_dir", FI_PARAM_STRING,
                                             "Folder for Unix sockets over which endpoints connect; none: TCP");
  char* folder = nullptr;
  return defined == 0 && fi_param_get_str(&Provider(), "socket_dir", &folder) == 0 && folder != nullptr ? folder : "";
}

int ListenInFolder(const std::string& folder, sockaddr_storage* address, std::string* path, UniqueFd* socket) {
  std::string first_path;
  UniqueFd listening;
  if (const int result = ListenUnderRandomName(folder, &first_path, &listening); result != 0) {
    return result;
  }
  const bool any_port = PortOf(*address) == 0;
  const uint64_t first = Random() % kPorts;
  int result = -EEXIST;
  for (uint64_t tried = 0; result == -EEXIST && tried < (any_port ? kPorts : 1); ++tried) {
    if (any_port) {
      SetPort(address, static_cast<uint16_t>(kFirstPort + (first + tried) % kPorts));
    }
    *path = folder + "/" + AddressText(*address);
    sockaddr_un fits;
    result = UnixAddress(*path, &fits) ? TakeName(folder, first_path, *path) : -ENAMETOOLONG;
  }
  if (result != 0) {
    unlink(first_path.c_str());
    return result == -EEXIST ? -FI_EADDRINUSE : result;
  }
  *socket = std::move(listening);
  return 0;
}

int ConnectInFolder(const std::string& folder, const sockaddr_storage& peer, UniqueFd* socket) {
  int result = ConnectTo(folder + "/" + AddressText(peer), socket);
  if (result == -ENOENT) {
    // One that listens at all addresses of its host.
    result = ConnectTo(folder + "/" + AddressText(AnyHost(peer)), socket);
  }
  return result == -ENOENT ? -FI_ECONNREFUSED : result;
}

}  // namespace rnicd::fi
