#pragma once

#include <string>

namespace rnicd::test {

// Takes `held` connections to the socket and keeps them; then connects and leaves as fast as it can, for ever.
[[noreturn]] void Storm(const std::string& path, int type, int held);

// Listens on the socket and closes every connection at once, for ever: the other end of a storm that is not the
// daemon's. Prints "ok" when it listens.
[[noreturn]] void ServeStorm(const std::string& path, int type);

}  // namespace rnicd::test
