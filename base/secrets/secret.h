#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rnicd {

// The SHA-256 of a secret, from which the secret cannot be recovered; stored in place of the secret.
class SecretDigest {
 public:
  static constexpr size_t kBytes = 32;

  static SecretDigest Of(std::string_view secret);
  // Restores a digest stored elsewhere.
  static SecretDigest FromBytes(std::span<const uint8_t, kBytes> bytes);
  // Constant time: takes as long for a wrong secret as for the right one.
  bool Matches(std::string_view secret) const;
  // The SHA-256 itself, to be stored and passed to another daemon.
  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

}  // namespace rnicd
