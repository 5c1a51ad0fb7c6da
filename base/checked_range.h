#pragma once

#include <cstdint>
#include <optional>

namespace rnicd {

// A range whose last byte has a valid 64-bit address. The end, one byte further, may be 2^64, which does not fit into
// 64 bits: later checks subtract instead of adding, so they cannot wrap.
class CheckedRange {
 public:
  // Returns nullopt when start + length exceeds 2^64. A length of 0 is allowed.
  static std::optional<CheckedRange> Make(uint64_t start, uint64_t length);

  uint64_t start() const { return start_; }
  uint64_t length() const { return length_; }
  // Address of the last byte. The range must not be empty.
  uint64_t last() const { return start_ + (length_ - 1); }

  // True when [start, start + length) lies inside this range. An empty range lies inside if its start does, or equals
  // the end.
  bool Contains(uint64_t start, uint64_t length) const;

 private:
  CheckedRange(uint64_t start, uint64_t length) : start_(start), length_(length) {}

  uint64_t start_;
  uint64_t length_;
};

// Number of pages of `page_bytes` (a power of two) that the range touches; 0 for an empty range.
uint64_t PagesTouched(const CheckedRange& range, uint64_t page_bytes);

}  // namespace rnicd
