#include <windows.h>

#include "tests/support/process/memory_file.h"

namespace rnicd::test {

SharedMapping::SharedMapping(int fd, uint64_t size) {
  void* const start = MapViewOfFile(LongToHandle(fd), FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, size);
  if (start != nullptr) {
    bytes_ = std::span(static_cast<std::byte*>(start), size);
  }
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) {
    UnmapViewOfFile(bytes_.data());
  }
}

}  // namespace rnicd::test
