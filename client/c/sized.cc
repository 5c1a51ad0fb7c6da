#include "client/c/sized.h"

#include <cerrno>

#include "base/status.h"
#include "client/c/result.h"

namespace rnicd::c {

absl::StatusOr<size_t> CommonBytes(const void* given, size_t known, std::string_view name) {
  if (given == nullptr) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, name);
  }
  const std::string field = std::string(name) + ".size";
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, field);
  }
  const auto* const bytes = static_cast<const std::byte*>(given);
  if (size > known && std::any_of(bytes + known, bytes + size, [](std::byte byte) { return byte != std::byte{}; })) {
    return WithErrno(MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = field, .limit = known},
                                         "what this library does not know is not zero"),
                     E2BIG);
  }
  return std::min(size, known);
}

}  // namespace rnicd::c
