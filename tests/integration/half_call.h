#pragma once

#include <cstdint>
#include <string>

namespace rnicd::test {

// The bytes of an incomplete gRPC call, as a hostile client might write them: the HTTP/2 preface, empty settings, the
// headers of a call of `path`, and one data frame whose message claims `claimed` bytes and contains `sent` of them. The
// call stays open. Source: RFC 9113, RFC 7541, gRPC over HTTP2.
std::string HalfCallBytes(const std::string& path, uint32_t claimed, uint32_t sent);

}  // namespace rnicd::test
