#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/rpc/limits.h"

namespace rnicd::rpc {

// The time that grpc-timeout grants: 1 to 8 digits and one of H, M, S, m, u, n. Empty when the text is anything else.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

// The header fields of a request, as far as a call needs them; the rest is counted and dropped.
// Source: gRPC over HTTP2, "Requests".
class RequestHeaders {
 public:
  // False when the fields are more, or have more bytes, than `limits` allows.
  bool Add(std::string_view name, std::string_view value, const Limits& limits);

  // The HTTP status of a request that is not gRPC at all: 405 for another method than POST, 415 for another content
  // type. Empty for gRPC.
  std::optional<int> NotGrpc() const;
  // Empty for a path that is longer than any method's.
  const std::string& path() const { return path_; }
  std::string TakePath() { return std::move(path_); }
  bool has_timeout() const { return has_timeout_; }
  // Empty when the timeout is malformed.
  std::optional<std::chrono::nanoseconds> timeout() const { return timeout_; }

 private:
  uint32_t fields_ = 0;
  uint64_t bytes_ = 0;
  bool is_post_ = false;
  bool is_grpc_ = false;
  bool has_timeout_ = false;
  std::optional<std::chrono::nanoseconds> timeout_;
  std::string path_;
};

}  // namespace rnicd::rpc
