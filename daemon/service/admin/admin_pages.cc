#include "daemon/service/admin/admin_pages.h"

#include <charconv>

#include "base/status.h"

namespace rnicd::service {
namespace {

constexpr uint32_t kDefaultPageSize = 1000;
constexpr uint32_t kMaxPageSize = 10000;

}  // namespace

std::string Format(const PageToken& page_token) {
  return std::to_string(page_token.session) + "." + std::to_string(page_token.region);
}

absl::StatusOr<PageToken> ParsePageToken(const std::string& text) {
  PageToken token;
  if (text.empty()) {
    return token;
  }
  const char* const end = text.data() + text.size();
  const auto session = std::from_chars(text.data(), end, token.session);
  if (session.ec == std::errc() && session.ptr != end && *session.ptr == '.') {
    const auto region = std::from_chars(session.ptr + 1, end, token.region);
    if (region.ec == std::errc() && region.ptr == end) {
      return token;
    }
  }
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_token");
}

absl::StatusOr<uint32_t> PageSizeOf(uint32_t wanted) {
  if (wanted > kMaxPageSize) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_size");
  }
  return wanted == 0 ? kDefaultPageSize : wanted;
}

}  // namespace rnicd::service
