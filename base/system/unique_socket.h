#pragma once

#include "base/unique_handle.h"

namespace rnicd {

struct SocketCloser {
  static void Close(int socket);
};

// Owns a socket. Another type than UniqueFd, because Windows closes sockets by a call of their own; of a SOCKET, as of
// any handle there, only 32 bits are significant.
using UniqueSocket = UniqueHandle<SocketCloser>;

}  // namespace rnicd
