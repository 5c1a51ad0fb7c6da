#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

// How the long lists are told page by page.
namespace rnicd::service {

// The last entry of the page before: a session, and a region in it (0 for all of the session's regions).
struct PageToken {
  uint64_t session = 0;
  uint64_t region = 0;
  friend auto operator<=>(const PageToken&, const PageToken&) = default;
};

// For next_page_token.
std::string Format(const PageToken& page_token);
// Empty text is the first page. Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<PageToken> ParsePageToken(const std::string& text);

// Entries of a page for the page_size of a request. Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<uint32_t> PageSizeOf(uint32_t wanted);

}  // namespace rnicd::service
