#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>

#include "base/units.h"

namespace rnicd::provider {

// Pages of a memory file, as core gives them to a card: shared, writable, populated.
class SharedPages {
 public:
  explicit SharedPages(size_t count) : bytes_(count * kNdkPageBytes) {
    const int file = memfd_create("provider_test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes_)), 0);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    EXPECT_NE(memory, MAP_FAILED);
    data_ = static_cast<std::byte*>(memory);
    close(file);
  }
  ~SharedPages() { munmap(data_, bytes_); }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  std::span<std::byte> page(size_t number) const { return bytes().subspan(number * kNdkPageBytes, kNdkPageBytes); }

 private:
  const size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace rnicd::provider
