#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/system/unique_socket.h"

namespace rnicd::inline client {

// A connected stream to the daemon, which does not block.
struct DaemonSocket {
  UniqueSocket socket;
  // What each call says in its header "authorization"; empty for none.
  std::string authorization;
  // On Windows the pipe, with whose end the daemon ends the connection.
  std::shared_ptr<void> pipe;
};

// Waits until the socket has bytes or has ended, or, where asked, also until it takes bytes. False at the deadline.
bool AwaitSocket(int socket, bool also_writable, Instant deadline);
// Waits until the socket takes bytes or has ended. False at the deadline.
bool AwaitWritable(int socket, Instant deadline);

}  // namespace rnicd::inline client
