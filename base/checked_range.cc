#include "base/checked_range.h"

#include <limits>

namespace rnicd {

std::optional<CheckedRange> CheckedRange::Make(uint64_t start, uint64_t length) {
  if (length != 0 && length - 1 > std::numeric_limits<uint64_t>::max() - start) {
    return std::nullopt;
  }
  return CheckedRange(start, length);
}

bool CheckedRange::Contains(uint64_t start, uint64_t length) const {
  if (start < start_) {
    return false;
  }
  const uint64_t offset = start - start_;
  return offset <= length_ && length <= length_ - offset;
}

uint64_t PagesTouched(const CheckedRange& range, uint64_t page_bytes) {
  if (range.length() == 0) {
    return 0;
  }
  const uint64_t first = range.start() / page_bytes;
  const uint64_t last = range.last() / page_bytes;
  return last - first + 1;
}

}  // namespace rnicd
