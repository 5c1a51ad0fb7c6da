#include "tests/support/process/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

namespace rnicd::test {

UniqueFd MakeMemfd(uint64_t size, unsigned flags) {
  UniqueFd file(memfd_create("rnicd-test", flags | MFD_CLOEXEC));
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return UniqueFd();
  }
  return file;
}

UniqueFd MakeSealableMemfd(uint64_t size) { return MakeMemfd(size, MFD_ALLOW_SEALING); }

SharedMapping::SharedMapping(int fd, uint64_t size) {
  void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (start != MAP_FAILED) {
    bytes_ = std::span(static_cast<std::byte*>(start), size);
  }
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) {
    munmap(bytes_.data(), bytes_.size());
  }
}

}  // namespace rnicd::test
