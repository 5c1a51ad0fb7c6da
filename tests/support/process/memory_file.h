#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/files/unique_fd.h"

namespace rnicd::test {

// A memfd of this size. `flags` as for memfd_create; always close-on-exec.
UniqueFd MakeMemfd(uint64_t size, unsigned flags);
// A memfd that the daemon should accept.
UniqueFd MakeSealableMemfd(uint64_t size);

// A shared writable mapping of a whole file; the destructor unmaps it.
class SharedMapping {
 public:
  SharedMapping(int fd, uint64_t size);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  // Empty if the kernel refused the mapping.
  std::span<std::byte> bytes() const { return bytes_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.data()); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace rnicd::test
