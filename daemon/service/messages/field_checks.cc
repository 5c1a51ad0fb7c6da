#include "daemon/service/messages/field_checks.h"

#include <algorithm>

#include "base/status.h"

namespace rnicd::service {

bool IsText(std::string_view text, size_t most) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return text.size() <= most && std::all_of(text.begin(), text.end(), printable);
}

absl::Status OutOfRange(const std::string& field) { return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, field); }

std::string At(const std::string& list, int index) { return list + "[" + std::to_string(index) + "]"; }

}  // namespace rnicd::service
