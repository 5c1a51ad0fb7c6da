#include "daemon/rpc/incoming_request.h"

#include <algorithm>

#include "wire/http2/message.h"
#include "wire/http2/timeout.h"

namespace rnicd::rpc {
namespace {

using http2::kPrefixBytes;

// What a field costs besides its text (RFC 9113, section 6.5.2).
constexpr uint64_t kFieldBytes = 32;
constexpr std::string_view kContentType = "application/grpc";
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
    timeout_ = http2::ParseTimeout(value);
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
  const http2::Prefix prefix = http2::ReadPrefix(prefix_);
  length_ = prefix.length;
  if (prefix.compressed) {
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
