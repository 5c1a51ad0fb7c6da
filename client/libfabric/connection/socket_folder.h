#pragma once

#include <sys/socket.h>

#include <string>

#include "base/files/unique_fd.h"

namespace rnicd::fi {

// The folder of Unix sockets that the user chose; empty: none.
std::string SocketFolder();

// A listening socket in the folder under the name of `address`; chooses its port if that is 0, and fills in `path`.
// Errors: as Listener::Open.
int ListenInFolder(const std::string& folder, sockaddr_storage* address, std::string* path, UniqueFd* socket);

// A socket that is connected to the one with that name. Errors: as BeginConnect.
int ConnectInFolder(const std::string& folder, const sockaddr_storage& peer, UniqueFd* socket);

}  // namespace rnicd::fi
