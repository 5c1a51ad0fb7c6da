#include <windows.h>
// Behind windows.h, whose types it uses.
#include <bcrypt.h>

#include <cstdlib>

#include "base/secrets/secret.h"

namespace rnicd {

SecretDigest SecretDigest::Of(std::string_view secret) {
  SecretDigest digest;
  BCRYPT_ALG_HANDLE algorithm = nullptr;
  // BCryptHash does not write what it hashes; its parameter is not const for the sake of old callers.
  auto* const bytes = reinterpret_cast<PUCHAR>(const_cast<char*>(secret.data()));
  // Without a digest every secret would match, so this ends the process.
  if (BCryptOpenAlgorithmProvider(&algorithm, BCRYPT_SHA256_ALGORITHM, nullptr, 0) != 0 ||
      BCryptHash(algorithm, nullptr, 0, bytes, static_cast<ULONG>(secret.size()), digest.bytes_.data(), kBytes) != 0) {
    std::abort();
  }
  BCryptCloseAlgorithmProvider(algorithm, 0);
  return digest;
}

bool SecretDigest::Matches(std::string_view secret) const {
  const SecretDigest other = Of(secret);
  // Windows has no comparison in constant time. The compiler may not end this loop at the first difference, because it
  // may not leave out a write of a volatile.
  volatile uint8_t difference = 0;
  for (size_t index = 0; index < kBytes; ++index) {
    difference = difference | (bytes_[index] ^ other.bytes_[index]);
  }
  return difference == 0;
}

}  // namespace rnicd
