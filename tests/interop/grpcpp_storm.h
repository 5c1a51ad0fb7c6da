#pragma once

#include <string>

namespace rnicd::interop {

// Thousands of calls of random methods from several threads of one connection, all given up. They end with an exception
// unless the session and its memory are there afterwards.
void CancelStorm(const std::string& socket);
// Their deadlines are 0.1 to 2 ms.
void DeadlineStorm(const std::string& socket);

}  // namespace rnicd::interop
