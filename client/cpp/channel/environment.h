#pragma once

#include <cstdlib>
#include <string>

namespace rnicd::inline client {

// The value of an environment variable; `otherwise` if it is not set or empty.
inline std::string EnvironmentOr(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace rnicd::inline client
