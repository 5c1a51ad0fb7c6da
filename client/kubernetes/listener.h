#pragma once

#include <string>

namespace rnicd::kubernetes {

// Whether a process accepts connections on the Unix socket at this path. The check opens a connection and closes it.
bool HasListener(const std::string& path);

}  // namespace rnicd::kubernetes
