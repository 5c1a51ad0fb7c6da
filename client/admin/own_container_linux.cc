#include <sys/socket.h>

#include <fstream>
#include <sstream>

#include "client/admin/own_container.h"

namespace rnicd::inline client {
namespace {

std::string ControlGroupsOf(const std::string& process) {
  std::ostringstream text;
  text << std::ifstream(process + "/cgroup").rdbuf();
  return text.str();
}

}  // namespace

bool IsDaemonInThisContainer(int socket, const std::string& proc) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  // The kernel names the process that listens, even where another one has made the socket.
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
    return false;
  }
  const std::string own = ControlGroupsOf(proc + "/self");
  return !own.empty() && ControlGroupsOf(proc + "/" + std::to_string(peer.pid)) == own;
}

}  // namespace rnicd::inline client
