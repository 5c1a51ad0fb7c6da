#pragma once

#include "base/files/unique_fd.h"

namespace rnicd::bench {

// Starts a process that echoes packets of 64 bytes, and returns this process's end of the socket. Call it before any
// use of gRPC, which does not survive a fork. The echo process ends with this one.
UniqueFd StartEchoServer();

// Sends one packet and receives its echo. False if the server has exited.
bool PingPong(int socket);

}  // namespace rnicd::bench
