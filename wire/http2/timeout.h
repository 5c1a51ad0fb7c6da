#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

// grpc-timeout: 1 to 8 digits and one of H, M, S, m, u, n. Source: gRPC over HTTP2, "Requests".
namespace rnicd::http2 {

// The time that the text grants, at most a century. Empty when it is anything else.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

// The text of a time, in the finest unit that can say it, rounded up; at least "1n".
std::string TimeoutText(std::chrono::nanoseconds timeout);

}  // namespace rnicd::http2
