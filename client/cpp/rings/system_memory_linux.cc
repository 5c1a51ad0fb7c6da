#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "client/cpp/rings/system_memory.h"

namespace rnicd::inline client {

std::optional<uint64_t> FileBytes(int file) {
  struct stat facts = {};
  return fstat(file, &facts) == 0 ? std::optional(static_cast<uint64_t>(facts.st_size)) : std::nullopt;
}

// A read maps many neighbouring pages of the file at once, and maps them writable, since the kernel does not track the
// first write to memory files. Failures are ignored: the mapping works without it, and kernels before 5.14 do not
// support this advice.
void FillPageTable(std::span<std::byte> mapping) { (void)madvise(mapping.data(), mapping.size(), MADV_POPULATE_READ); }

bool KeepFromChildren(std::span<std::byte> mapping) {
  return madvise(mapping.data(), mapping.size(), MADV_DONTFORK) == 0;
}

bool IsWokenThroughMemory() { return true; }

// The write fails only when the counter is full, after 2^64 doorbells that were not read.
void SetDoorbell(int doorbell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(doorbell, &one, sizeof(one));
}

// Source: ppoll(2).
void WaitForPipe(int pipe, std::chrono::nanoseconds time) {
  constexpr int64_t kSecond = 1'000'000'000;
  pollfd wanted{.fd = pipe, .events = POLLIN, .revents = 0};
  const timespec timeout{.tv_sec = time.count() / kSecond, .tv_nsec = time.count() % kSecond};
  (void)ppoll(&wanted, 1, &timeout, nullptr);
}

bool DrainPipe(int pipe) {
  std::array<char, 64> bytes;
  ssize_t count = 0;
  do {
    count = read(pipe, bytes.data(), bytes.size());
  } while (count > 0);
  return count != 0;
}

}  // namespace rnicd::inline client
