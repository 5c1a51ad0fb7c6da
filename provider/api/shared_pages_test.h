#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/system/faulty_os.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd::provider {

// Pages of a memory file, as core gives them to a card: shared, writable, populated.
class SharedPages {
 public:
  explicit SharedPages(size_t count) {
    os_.UseKernelPages(kLargestPage);
    const auto file = os_.CreateMemoryFile(count * kNdkPageBytes, kNdkPageBytes);
    EXPECT_TRUE(file.ok()) << file.status();
    const auto mapping = os_.Map(file->get(), count * kNdkPageBytes);
    EXPECT_TRUE(mapping.ok()) << mapping.status();
    bytes_ = *mapping;
    EXPECT_TRUE(os_.Populate(bytes_).ok());
  }
  ~SharedPages() { EXPECT_TRUE(os_.Unmap(bytes_).ok()); }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  std::span<std::byte> page(size_t number) const { return bytes().subspan(number * kNdkPageBytes, kNdkPageBytes); }

 private:
  // The largest page of any kernel: the memory begins at one, so that the tests of such kernels can use it.
  static constexpr uint64_t kLargestPage = 64 << 10;

  FaultyOs os_{SystemOs()};
  std::span<std::byte> bytes_;
};

}  // namespace rnicd::provider
