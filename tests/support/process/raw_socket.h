#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/files/unique_fd.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

// A connected Unix socket of this type; invalid if there is no listener. `path` fits a socket address.
UniqueFd ConnectUnix(const std::string& path, int type);

// Writes as much as the socket accepts without blocking for long; false if the peer has closed the connection.
bool SendBytes(int socket_fd, std::string_view bytes);

// True once the peer closes the connection; false on timeout. Bytes received before that are discarded.
bool HangsUp(int socket_fd, std::chrono::milliseconds limit = kTimeout);

}  // namespace rnicd::test
