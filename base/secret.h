#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rnicd {

// What is kept of a secret: its SHA-256, from which it cannot be had back.
class SecretDigest {
 public:
  static SecretDigest Of(std::string_view secret);
  // Takes as long for a wrong secret as for the right one.
  bool Matches(std::string_view secret) const;

 private:
  std::array<uint8_t, 32> bytes_{};
};

}  // namespace rnicd
