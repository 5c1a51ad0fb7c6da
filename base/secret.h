#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rnicd {

// What is kept of a secret: its SHA-256, from which it cannot be had back.
class SecretDigest {
 public:
  static inline constexpr size_t kBytes = 32;

  static SecretDigest Of(std::string_view secret);
  // One that was kept elsewhere.
  static SecretDigest FromBytes(std::span<const uint8_t, kBytes> bytes);
  // Takes as long for a wrong secret as for the right one.
  bool Matches(std::string_view secret) const;
  // The SHA-256 itself, to be noted down and told to another daemon.
  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

}  // namespace rnicd
