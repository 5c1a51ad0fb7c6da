#pragma once

#include <chrono>
#include <string>

#include "tests/support/process/wait.h"

namespace rnicd::test {

// Calls a method, with an empty message, on a connection of its own in frames written by hand: cheaper than any gRPC,
// and patient where gRPC gives up for a second, because connect() waits for a place in the socket's queue.
// True if a message came back; false if the daemon refused the connection or the call.
bool CallOnce(const std::string& socket_path, const std::string& method, std::chrono::milliseconds limit = kTimeout);
// The same as the first call on a connection that is made.
bool CallOn(int connection, const std::string& method, std::chrono::milliseconds limit = kTimeout);

}  // namespace rnicd::test
