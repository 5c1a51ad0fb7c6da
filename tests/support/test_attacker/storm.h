#pragma once

#include <string>

namespace rnicd::test {

// Takes `held` connections to the socket and keeps them; then connects and leaves as fast as it can, for ever.
[[noreturn]] void Storm(const std::string& path, int type, int held);

}  // namespace rnicd::test
