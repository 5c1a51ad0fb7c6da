#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "tests/support/wait.h"

namespace rnicd::test {

// A connected Unix socket of this type; invalid when nothing listens there. `path` fits a socket address.
UniqueFd ConnectUnix(const std::string& path, int type);

// Writes what the socket takes without blocking for long; false when the other side has hung up.
bool SendBytes(int socket_fd, std::string_view bytes);

// True when the other side hangs up, now or in time. What it says before that is read and dropped.
bool HangsUp(int socket_fd, std::chrono::milliseconds limit = kPatience);

}  // namespace rnicd::test
