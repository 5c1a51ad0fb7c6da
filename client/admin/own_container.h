#pragma once

#include <string>

namespace rnicd::inline client {

// Whether the daemon that listens at the other end of a connected socket is in the control groups of this process, as
// the processes of one container are. False where the system does not tell. `proc` is for tests.
bool IsDaemonInThisContainer(int socket, const std::string& proc = "/proc");

}  // namespace rnicd::inline client
