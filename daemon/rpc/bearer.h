#pragma once

#include <string_view>

#include "base/secret.h"

namespace rnicd::rpc {

// The header in which a request proves that it comes from the holder of its connection's secret. It is read here and
// kept nowhere.
inline constexpr std::string_view kSecretHeader = "authorization";

// True for "Bearer " and the secret. Takes as long for a wrong secret as for the right one.
// Source: RFC 6750, section 2.1.
bool IsBearerOf(const SecretDigest& secret, std::string_view value);

}  // namespace rnicd::rpc
