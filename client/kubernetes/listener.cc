#include "client/kubernetes/listener.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace rnicd::kubernetes {

bool HasListener(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return false;
  }
  path.copy(address.sun_path, path.size());
  const UniqueFd asking(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // EAGAIN: a listener exists, and its backlog is full.
  return connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
}

}  // namespace rnicd::kubernetes
