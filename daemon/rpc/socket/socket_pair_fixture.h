#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/system/unique_socket.h"

namespace rnicd::rpc {

// Two connected, non-blocking sockets: of the Unix domain on Linux, of TCP on Windows.
std::pair<UniqueSocket, UniqueSocket> MakeSocketPair();

// Waits until one of `events` (bits of poller.h) holds, or the socket has failed. False when the time is over.
bool WaitForSocket(int socket, uint32_t events, std::chrono::milliseconds limit);

}  // namespace rnicd::rpc
