#include "daemon/rpc/bearer.h"

namespace rnicd::rpc {
namespace {

constexpr std::string_view kScheme = "Bearer ";
// No secret is longer. What is longer is not hashed: it may have as many bytes as all header fields together.
constexpr size_t kSecretBytesMax = 256;

}  // namespace

bool IsBearerOf(const SecretDigest& secret, std::string_view value) {
  if (!value.starts_with(kScheme) || value.size() > kScheme.size() + kSecretBytesMax) {
    return false;
  }
  return secret.Matches(value.substr(kScheme.size()));
}

}  // namespace rnicd::rpc
