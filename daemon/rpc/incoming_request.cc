#include "daemon/rpc/incoming_request.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

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

constexpr std::string_view kUnits = "HMSmun";
constexpr std::array<std::chrono::nanoseconds, kUnits.size()> kUnitTimes = {
    std::chrono::hours(1),        std::chrono::minutes(1),      std::chrono::seconds(1),
    std::chrono::milliseconds(1), std::chrono::microseconds(1), std::chrono::nanoseconds(1)};
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

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) {
    return std::nullopt;
  }
  const size_t unit = kUnits.find(text.back());
  int64_t amount = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
      return std::nullopt;
    }
    amount = amount * 10 + (digit - '0');
  }
  if (unit == std::string_view::npos) {
    return std::nullopt;
  }
  // 99,999,999 hours do not fit into 64 bits of nanoseconds; a century is as good as for ever.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(876'000);
  return amount > kLongest / kUnitTimes[unit] ? kLongest : amount * kUnitTimes[unit];
}

bool IncomingRequest::AddHeader(std::string_view name, std::string_view value, const Limits& limits,
                                const std::optional<SecretDigest>& secret) {
  field_bytes_ += name.size() + value.size() + kFieldBytes;
  if (++fields_ > limits.header_fields_max || field_bytes_ > limits.header_bytes_max) {
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
  } else if (name == kSecretHeader) {
    proven_ = secret.has_value() && IsBearerOf(*secret, value);
  }
  return true;
}

std::optional<int> IncomingRequest::NotGrpc() const {
  if (!is_post_) {
    return 405;
  }
  return is_grpc_ ? std::nullopt : std::optional(415);
}

std::optional<Refusal> IncomingRequest::CheckHeaders(bool needs_secret) const {
  if (needs_secret && !proven_) {
    return Refusal{Refusal::kSecretMissing};
  }
  if (has_timeout_ && !timeout_.has_value()) {
    return Refusal{Refusal::kTimeoutMalformed};
  }
  return std::nullopt;
}

std::optional<Refusal> IncomingRequest::AddData(std::string_view bytes, const Limits& limits) {
  if (prefix_.size() < kPrefixBytes) {
    const size_t taken = std::min(bytes.size(), kPrefixBytes - prefix_.size());
    prefix_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (prefix_.size() < kPrefixBytes) {
      return std::nullopt;
    }
    if (const std::optional<Refusal> refusal = AcceptLength(limits); refusal.has_value()) {
      return refusal;
    }
  }
  if (bytes.size() > length_ - message_.size()) {
    return Refusal{Refusal::kMessageCount};
  }
  message_.append(bytes);
  return std::nullopt;
}

std::optional<Refusal> IncomingRequest::AcceptLength(const Limits& limits) {
  for (const char byte : prefix_.substr(1)) {
    length_ = length_ << 8U | static_cast<unsigned char>(byte);
  }
  if (prefix_[0] != 0) {
    return Refusal{Refusal::kCompressed};
  }
  if (length_ > limits.message_bytes_max) {
    return Refusal{Refusal::kMessageTooLarge, length_};
  }
  if (!charge_.Grow(length_)) {
    return Refusal{Refusal::kOverBudget, length_};
  }
  message_.reserve(length_);  // Exactly what it needs, which a growing text would exceed.
  return std::nullopt;
}

std::optional<Refusal> IncomingRequest::End() {
  ended_ = true;
  const bool is_whole = prefix_.size() == kPrefixBytes && message_.size() == length_;
  return is_whole ? std::nullopt : std::optional(Refusal{Refusal::kMessageCount});
}

}  // namespace rnicd::rpc
