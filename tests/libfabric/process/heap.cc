// Registers blocks of malloc's, each of which is a mapping of its own: librnicd-heap.so is preloaded.

#include <malloc.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "tests/libfabric/process/process.h"

namespace rnicd::fi {
namespace {

constexpr auto kSizes = std::to_array<size_t>({512, 1536, 4080, 4081, 10240, 100'000, 300'000});

void* Aligned(size_t alignment, size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

constexpr void* (*kWays[])(size_t) = {
    [](size_t bytes) { return std::malloc(bytes); },
    [](size_t bytes) { return std::calloc(1, bytes); },
    [](size_t bytes) { return std::realloc(std::malloc(100), bytes); },
    [](size_t bytes) { return Aligned(64, bytes); },
    [](size_t bytes) { return Aligned(4096, bytes); },
    [](size_t bytes) { return Aligned(1 << 16, bytes); },
    [](size_t bytes) { return std::aligned_alloc(256, bytes); },
};

fid_mr* Register(fid_domain* domain, const void* block, size_t bytes) {
  fid_mr* region = nullptr;
  const int result = fi_mr_reg(domain, block, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &region, nullptr);
  Expect(result == 0, fi_strerror(-result), bytes);
  return region;
}

void Close(fid_mr* region) { Expect(fi_close(&region->fid) == 0, "a region that cannot be closed"); }

void Check(const void* block, size_t bytes, int with, const char* when) {
  const auto* const first = static_cast<const unsigned char*>(block);
  Expect(std::all_of(first, first + bytes, [with](unsigned char byte) { return byte == with; }), when, bytes);
}

void RegisterEach(fid_domain* domain) {
  for (const size_t bytes : kSizes) {
    for (const auto& allocate : kWays) {
      void* const block = allocate(bytes);
      Expect(block != nullptr, "no memory", bytes);
      std::memset(block, 1, bytes);
      fid_mr* const region = Register(domain, block, bytes);
      Check(block, bytes, 1, "registering has changed a block");
      std::memset(block, 2, bytes);
      Close(region);
      Check(block, bytes, 2, "closing has changed a block");
      std::free(block);
    }
  }
}

// Against the rules from here on. The region has the old pages, and the block is the program's alone.
void Resize(fid_domain* domain, size_t from, size_t to) {
  void* const block = std::malloc(from);
  std::memset(block, 3, from);
  fid_mr* const region = Register(domain, block, from);
  void* const moved = std::realloc(block, to);
  Check(moved, std::min(from, to), 3, "realloc has lost bytes");
  std::memset(moved, 4, malloc_usable_size(moved));
  Close(region);
  Check(moved, to, 4, "closing has changed a block that was resized");
  std::free(moved);
}

void FreeAndAllocateAgain(fid_domain* domain) {
  constexpr size_t kBytes = 10240;
  void* const block = std::malloc(kBytes);
  fid_mr* const region = Register(domain, block, kBytes);
  std::free(block);
  void* const next = std::malloc(kBytes);
  Check(next, kBytes, 0, "a new block has bytes of one that is registered");
  std::memset(next, 5, kBytes);
  fid_mr* const next_region = Register(domain, next, kBytes);
  Close(region);
  Check(next, kBytes, 5, "closing the region of a freed block has changed another one");
  Close(next_region);
  Check(next, kBytes, 5, "closing has changed a block");
  std::free(next);
}

}  // namespace

void UseBlocksOfTheHeap() {
  const Opened opened;
  RegisterEach(opened.domain);
  Resize(opened.domain, 10240, 100'000);
  Resize(opened.domain, 100'000, 10240);
  Resize(opened.domain, 100'000, 64);
  FreeAndAllocateAgain(opened.domain);
}

}  // namespace rnicd::fi
