#include "wire/http2/status.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rnicd::http2 {
namespace {

constexpr size_t kValueBytesMax = 64 << 10;
constexpr int kUnknown = 2;
constexpr int kCodeMax = 16;

int CodeOf(std::string_view value) {
  int code = 0;
  for (const char digit : value) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit)) || code > kCodeMax) {
      return kUnknown;
    }
    code = code * 10 + (digit - '0');
  }
  return value.empty() || code > kCodeMax ? kUnknown : code;
}

// -1 for what is no digit.
int HexValueOf(char digit) {
  if (absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
    return digit - '0';
  }
  const char letter = absl::ascii_tolower(static_cast<unsigned char>(digit));
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// abseil takes it with and without padding.
std::string Base64Decoded(std::string_view text) {
  std::string bytes;
  return absl::Base64Unescape({text.data(), text.size()}, &bytes) ? bytes : std::string();
}

}  // namespace

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char character : text) {
    if (character >= ' ' && character <= '~' && character != '%') {
      encoded.push_back(character);
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(character), absl::kZeroPad2));
    }
  }
  return encoded;
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t place = 0; place < text.size(); ++place) {
    const bool escapes = text[place] == '%' && text.size() - place > 2;
    const int high = escapes ? HexValueOf(text[place + 1]) : -1;
    const int low = escapes ? HexValueOf(text[place + 2]) : -1;
    if (high < 0 || low < 0) {
      decoded.push_back(text[place]);
    } else {
      decoded.push_back(static_cast<char>(high << 4 | low));
      place += 2;
    }
  }
  return decoded;
}

std::vector<HeaderField> TrailersOf(const Status& status) {
  std::vector<HeaderField> trailers = {{"grpc-status", absl::StrCat(status.code)}};
  if (!status.message.empty()) {
    trailers.emplace_back("grpc-message", PercentEncoded(status.message));
  }
  if (!status.details.empty()) {
    std::string details = absl::Base64Escape(status.details);
    details.erase(details.find_last_not_of('=') + 1);  // gRPC sends no padding.
    trailers.emplace_back("grpc-status-details-bin", std::move(details));
  }
  return trailers;
}

void StatusReader::Add(std::string_view name, std::string_view value) {
  if (name == "grpc-status") {
    code_ = CodeOf(value);
  } else if (value.size() > kValueBytesMax) {
    return;
  } else if (name == "grpc-message") {
    message_ = PercentDecoded(value);
  } else if (name == "grpc-status-details-bin") {
    details_ = Base64Decoded(value);
  }
}

std::optional<Status> StatusReader::Take() {
  const StatusReader taken = std::exchange(*this, StatusReader());
  if (!taken.code_.has_value()) {
    return std::nullopt;
  }
  return Status{.code = *taken.code_, .message = taken.message_, .details = taken.details_};
}

}  // namespace rnicd::http2
