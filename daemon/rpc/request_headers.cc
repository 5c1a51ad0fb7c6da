#include "daemon/rpc/request_headers.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace rnicd::rpc {
namespace {

// What a field costs besides its text (RFC 9113, section 6.5.2).
constexpr uint64_t kFieldBytes = 32;
constexpr std::string_view kContentType = "application/grpc";
constexpr size_t kTimeoutDigitsMax = 8;
// No method has a longer path. What is longer is not kept: a path may be as long as all header fields together.
constexpr size_t kPathBytesMax = 256;

// application/grpc, application/grpc+proto, application/grpc;charset=...
bool IsGrpc(std::string_view content_type) {
  if (!content_type.starts_with(kContentType)) {
    return false;
  }
  const std::string_view rest = content_type.substr(kContentType.size());
  return rest.empty() || rest.front() == '+' || rest.front() == ';';
}

std::optional<std::chrono::nanoseconds> UnitOf(char unit) {
  switch (unit) {
    case 'H':
      return std::chrono::hours(1);
    case 'M':
      return std::chrono::minutes(1);
    case 'S':
      return std::chrono::seconds(1);
    case 'm':
      return std::chrono::milliseconds(1);
    case 'u':
      return std::chrono::microseconds(1);
    case 'n':
      return std::chrono::nanoseconds(1);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) {
    return std::nullopt;
  }
  const std::optional<std::chrono::nanoseconds> unit = UnitOf(text.back());
  int64_t amount = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
      return std::nullopt;
    }
    amount = amount * 10 + (digit - '0');
  }
  if (!unit.has_value()) {
    return std::nullopt;
  }
  // 99,999,999 hours do not fit into 64 bits of nanoseconds; a century is as good as for ever.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(876'000);
  return amount > kLongest / *unit ? kLongest : amount * *unit;
}

bool RequestHeaders::Add(std::string_view name, std::string_view value, const Limits& limits) {
  bytes_ += name.size() + value.size() + kFieldBytes;
  if (++fields_ > limits.header_fields_max || bytes_ > limits.header_bytes_max) {
    return false;
  }
  if (name == ":method") {
    is_post_ = value == "POST";
  } else if (name == ":path") {
    path_ = value.size() <= kPathBytesMax ? value : std::string_view();
  } else if (name == "content-type") {
    is_grpc_ = IsGrpc(value);
  } else if (name == "grpc-timeout") {
    has_timeout_ = true;
    timeout_ = ParseTimeout(value);
  }
  return true;
}

std::optional<int> RequestHeaders::NotGrpc() const {
  if (!is_post_) {
    return 405;
  }
  return is_grpc_ ? std::nullopt : std::optional(415);
}

}  // namespace rnicd::rpc
