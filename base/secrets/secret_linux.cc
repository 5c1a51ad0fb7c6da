#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstdlib>

#include "base/secrets/secret.h"

namespace rnicd {

SecretDigest SecretDigest::Of(std::string_view secret) {
  SecretDigest digest;
  // Without a digest every secret would match, so this ends the process.
  if (SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.bytes_.data()) == nullptr) {
    std::abort();
  }
  return digest;
}

bool SecretDigest::Matches(std::string_view secret) const {
  const SecretDigest other = Of(secret);
  return CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

}  // namespace rnicd
