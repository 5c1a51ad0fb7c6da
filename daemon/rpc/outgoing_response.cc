#include "daemon/rpc/outgoing_response.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rnicd::rpc {

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

}  // namespace rnicd::rpc
