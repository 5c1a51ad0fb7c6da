#pragma once

// What the tests of rings share: memory of a ring or queue, as both sides map it, and its header as a client sees it.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "base/units.h"
#include "ring/geometry.h"
#include "ring/layout.h"

namespace rnicd::ring {

// A timeout that no test reaches.
inline constexpr std::chrono::hours kForever{24};

// Zero-filled memory, aligned to a page.
class SharedBytes {
 public:
  explicit SharedBytes(size_t bytes)
      : bytes_(bytes), memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kNdkPageBytes}))) {
    std::fill_n(memory_.get(), bytes, std::byte{0});
  }

  std::span<std::byte> all() const { return {memory_.get(), bytes_}; }
  std::byte* at(size_t offset) const { return memory_.get() + offset; }
  template <typename Header>
  Header& header() const {
    return *reinterpret_cast<Header*>(memory_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kNdkPageBytes}); }
  };

  size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

inline RingGeometry MustMakeRing(uint32_t entries, uint32_t payload_bytes = kPayloadBytesMin) {
  const absl::StatusOr<RingGeometry> geometry = MakeRingGeometry(entries, payload_bytes);
  EXPECT_TRUE(geometry.ok()) << geometry.status();
  return geometry.value_or(RingGeometry());
}

// Near the end of all indices: a ring of some entries that begins here soon wraps around.
inline constexpr uint32_t kBeforeTheWrap = UINT32_MAX - 5;

// A ring's memory whose indices all begin at `first`.
inline SharedBytes RingMemory(const RingGeometry& geometry, uint32_t first = 0) {
  SharedBytes memory(geometry.file_bytes());
  auto& header = memory.header<RingHeader>();
  header.submission_tail = header.submission_head = header.completion_tail = header.completion_head = first;
  return memory;
}

inline SharedBytes QueueMemory(const QueueGeometry& geometry, uint32_t first = 0) {
  SharedBytes memory(geometry.file_bytes());
  auto& header = memory.header<QueueHeader>();
  header.tail = header.head = first;
  return memory;
}

}  // namespace rnicd::ring
