#include "base/secrets/secret.h"

#include <algorithm>

namespace rnicd {

SecretDigest SecretDigest::FromBytes(std::span<const uint8_t, kBytes> bytes) {
  SecretDigest digest;
  std::copy(bytes.begin(), bytes.end(), digest.bytes_.begin());
  return digest;
}

}  // namespace rnicd
