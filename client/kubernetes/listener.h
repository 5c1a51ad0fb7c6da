#pragma once

#include <string>

namespace rnicd::kubernetes {

// A process takes connections on the Unix socket at this path. Asking makes one and drops it.
bool SomebodyListens(const std::string& path);

}  // namespace rnicd::kubernetes
