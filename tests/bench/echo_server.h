#pragma once

#include "base/unique_fd.h"

namespace rnicd::bench {

// Starts a process that echoes packets of 64 bytes, and answers our end of the socket to it. Call it before anything
// of gRPC, which does not survive a fork. The process ends with this one.
UniqueFd StartEchoServer();

// One packet there and back. False when the server is gone.
bool PingPong(int socket);

}  // namespace rnicd::bench
