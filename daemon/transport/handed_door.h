#pragma once

#include <vector>

#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "daemon/transport/client_socket.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::transport {

// A listener on its way to a daemon that takes over. It is a copy: both daemons have the same queue of newcomers.
struct HandedSocket {
  Door door = Door::kWorkload;
  // The grant whose door it is; 0 for a socket that all share.
  GrantId grant;
  UniqueFd listener;
  SocketFile file;
};

// What makes clients find the daemon.
struct HandedDoor {
  // Copies of the locks of the directories.
  UniqueFd workloads_lock;
  UniqueFd operators_lock;
  UniqueFd doors_lock;
  std::vector<HandedSocket> sockets;
};

}  // namespace rnicd::transport
