#include "tests/fuzz/descriptors.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace rnicd::fuzz {
namespace {

UniqueFd MemoryFile(uint64_t bytes, int seals, unsigned flags = MFD_ALLOW_SEALING) {
  UniqueFd file(memfd_create("fuzz", MFD_CLOEXEC | flags));
  // If the file cannot be made this long it stays empty.
  (void)ftruncate(file.get(), static_cast<off_t>(bytes));
  if (seals != 0) {
    fcntl(file.get(), F_ADD_SEALS, seals);
  }
  return file;
}

// The same file, reopened.
UniqueFd Reopened(const UniqueFd& file, int flags) {
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), flags | O_CLOEXEC));
}

// One end of a pair whose other end is closed.
template <typename Make>
UniqueFd EndOf(Make make, size_t end) {
  std::array<int, 2> ends{-1, -1};
  if (make(ends.data()) != 0) {
    return UniqueFd();
  }
  const UniqueFd other(ends[1 - end]);
  return UniqueFd(ends[end]);
}

UniqueFd PipeEnd(size_t end) {
  return EndOf([](int* ends) { return pipe2(ends, O_CLOEXEC); }, end);
}
UniqueFd SocketEnd() {
  return EndOf([](int* ends) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }, 0);
}

UniqueFd FileWithAHole(uint64_t bytes) {
  UniqueFd file = MemoryFile(bytes, 0);
  fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  return file;
}

}  // namespace

UniqueFd OpenDescriptor(uint8_t kind, uint64_t bytes) {
  switch (kind % kDescriptorKinds) {
    case 0:
      return MemoryFile(bytes, 0);
    case 1:
      return MemoryFile(bytes, F_SEAL_SHRINK);
    case 2:
      return MemoryFile(bytes, F_SEAL_SHRINK | F_SEAL_GROW);
    case 3:
      return MemoryFile(bytes, F_SEAL_WRITE);
    case 4:
      return MemoryFile(bytes, F_SEAL_FUTURE_WRITE);
    case 5:
      return MemoryFile(bytes, F_SEAL_SEAL);
    case 6:
      return MemoryFile(bytes, 0, 0);
    case 7:
      return MemoryFile(0, 0);
    case 8:
      return MemoryFile(bytes + 1, F_SEAL_GROW);
    case 9:
      return Reopened(MemoryFile(bytes, 0), O_RDONLY);
    case 10:
      return Reopened(MemoryFile(bytes, 0), O_WRONLY);
    case 11:
      return Reopened(MemoryFile(bytes, 0), O_PATH);
    case 12:
      return MemoryFile(bytes, 0, MFD_ALLOW_SEALING | MFD_HUGETLB);
    case 13:
      return FileWithAHole(bytes);
    case 14:
      return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
    case 15:
      return UniqueFd(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    case 16:
      return PipeEnd(kind / kDescriptorKinds % 2);
    case 17:
      return SocketEnd();
    case 18:
      return UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    default:
      return UniqueFd(eventfd(0, EFD_CLOEXEC));
  }
}

}  // namespace rnicd::fuzz
