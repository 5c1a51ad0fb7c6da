#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

// Paging of long lists.
namespace rnicd::service {

// The last entry of the page before: a session, and a region in it (0 for all of the session's regions).
struct PageToken {
  uint64_t session = 0;
  uint64_t region = 0;
  friend auto operator<=>(const PageToken&, const PageToken&) = default;
};

// Text of next_page_token.
std::string Format(const PageToken& page_token);
// Position behind which a page begins; an empty text means the first page. Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<PageToken> ParsePageToken(const std::string& text);

// Number of entries of a page, from the page_size of a request. Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<uint32_t> PageSizeOf(uint32_t wanted);

}  // namespace rnicd::service
