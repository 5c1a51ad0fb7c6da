#pragma once

#include <cstdint>
#include <optional>

namespace rnicd {

// start and length whose end was proved not to pass 2^64 - 1; every later question is answered by subtraction, so
// that nothing can wrap.
class CheckedRange {
 public:
  // Nothing when start + length passes 2^64 - 1. A length of 0 is allowed.
  static std::optional<CheckedRange> Make(uint64_t start, uint64_t length);

  uint64_t start() const { return start_; }
  uint64_t length() const { return length_; }
  uint64_t end() const { return start_ + length_; }

  // True when [start, start + length) lies inside this range. An empty range lies inside when its start does, the end
  // included.
  bool Contains(uint64_t start, uint64_t length) const;

 private:
  CheckedRange(uint64_t start, uint64_t length) : start_(start), length_(length) {}

  uint64_t start_;
  uint64_t length_;
};

// How many pages of `page_bytes` (a power of two) the range touches; 0 for an empty range.
uint64_t PagesTouched(const CheckedRange& range, uint64_t page_bytes);

}  // namespace rnicd
