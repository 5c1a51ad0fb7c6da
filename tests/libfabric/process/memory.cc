// Registers and closes buffers of all kinds that the provider takes, while other threads use the heap and fork.

#include <fcntl.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/libfabric/process/process.h"
#include "tests/support/process/address_sanitizer.h"

namespace rnicd::fi {
namespace {

constexpr int kBusyThreads = 12;
constexpr int kRegistrars = 3;
constexpr size_t kPage = 4096;
// An entry of a pool of libfabric's, which stays free in front of the others.
constexpr size_t kEntry = 0x160;

using Random = std::mt19937_64;

// Sizes of all orders of magnitude are equally likely.
size_t AnySize(Random& random, int bits_min, int bits_max) {
  const size_t order = size_t{1} << (bits_min + random() % static_cast<size_t>(bits_max - bits_min));
  return order + random() % order;
}

bool IsFilled(const unsigned char* bytes, size_t size, unsigned char with) {
  return bytes[0] == with && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

// --- What uses the heap meanwhile -----------------------------------------------------------------------------------

// A block of malloc's, filled with one byte.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { std::free(bytes_); }

  void Check() const { Expect(size_ == 0 || IsFilled(bytes_, size_, fill_), "a block of the heap has changed", size_); }
  void Change(Random& random) {
    Check();
    if (random() % 3 == 0) {
      std::free(bytes_);
      bytes_ = nullptr;
      size_ = 0;
    }
    const size_t size = AnySize(random, 4, 20);
    auto* const moved = static_cast<unsigned char*>(std::realloc(bytes_, size));
    Expect(moved != nullptr, "no memory", size);
    Expect(size_ == 0 || IsFilled(moved, std::min(size, size_), fill_), "realloc has lost bytes", size);
    bytes_ = moved;
    size_ = size;
    fill_ = static_cast<unsigned char>(random());
    std::memset(bytes_, fill_, size_);
  }

 private:
  unsigned char* bytes_ = nullptr;
  size_t size_ = 0;
  unsigned char fill_ = 0;
};

void UseHeap(uint64_t seed, const std::atomic<bool>& stop) {
  Random random(seed);
  std::array<Block, 32> blocks;
  // A thread's own: those that register come first.
  nice(10);
  while (!stop) {
    blocks[random() % blocks.size()].Change(random);
  }
}

// --- Children -------------------------------------------------------------------------------------------------------

[[noreturn]] void BeAChild(uint64_t way, std::array<Block, 8>& blocks) {
  is_a_child = true;
  if (way == 0) {
    execl("/proc/self/exe", "libfabric_process", nullptr);
  }
  Random random(way);
  for (Block& block : blocks) {
    block.Change(random);
  }
  if (way % 2 == 0) {
    _exit(0);
  }
  // With all that runs at a program's end.
  std::exit(0);
}

void Fork(uint64_t seed, const std::atomic<bool>& stop) {
  Random random(seed);
  std::array<Block, 8> blocks;
  while (!stop) {
    blocks[random() % blocks.size()].Change(random);
    // A child's heap is locked for ever where another thread of its parent was in AddressSanitizer's quarantine: such a
    // child only becomes another program.
    const uint64_t way = test::kAddressSanitizer ? 0 : random() % 3;
    const pid_t child = fork();
    if (child == 0) {
      BeAChild(way, blocks);
    }
    int status = -1;
    Expect(waitpid(child, &status, 0) == child && status == 0, "a child has ended by wait status", status);
    for (const Block& block : blocks) {
      block.Check();
    }
  }
}

// --- Registered buffers ---------------------------------------------------------------------------------------------

// What a registrar works on.
class Buffer {
 public:
  enum class Kind { kPool, kBlock, kPagesOfTheHeap, kMapping };

  Buffer(Kind kind, Random& random) : kind_(kind) {
    switch (kind) {
      case Kind::kPool:
        allocated_ = AnySize(random, 18, 22);
        Expect(posix_memalign(&start_, kPage, allocated_) == 0, "no memory", allocated_);
        offset_ = kEntry;
        break;
      case Kind::kBlock:
        allocated_ = AnySize(random, 17, 21);
        start_ = std::malloc(allocated_);
        Expect(start_ != nullptr, "no memory", allocated_);
        break;
      case Kind::kPagesOfTheHeap:
        allocated_ = (1 + random() % 8) * kPage;
        Expect(posix_memalign(&start_, kPage, allocated_) == 0, "no memory", allocated_);
        break;
      case Kind::kMapping:
        allocated_ = (1 + random() % 256) * kPage;
        start_ = mmap(nullptr, allocated_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        Expect(start_ != MAP_FAILED, "no mapping", allocated_);
        break;
    }
    std::memset(start_, 0, allocated_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (kind_ == Kind::kMapping) {
      munmap(start_, allocated_);
    } else {
      std::free(start_);
    }
  }

  unsigned char* bytes() const { return static_cast<unsigned char*>(start_) + offset_; }
  size_t size() const { return allocated_ - offset_; }
  // Whether the provider must take it. Nobody knows for pages of the heap, which are refused in that of brk.
  bool MustBeTaken() const { return kind_ == Kind::kMapping || (kind_ != Kind::kPagesOfTheHeap && HasMapping()); }
  bool MayBeTaken() const { return MustBeTaken() || kind_ == Kind::kPagesOfTheHeap; }
  void Fill(unsigned char with) {
    fill_ = with;
    std::memset(start_, with, allocated_);
  }
  void Check(const char* when) const {
    Expect(IsFilled(static_cast<unsigned char*>(start_), allocated_, fill_), when, allocated_);
  }

 private:
  // As malloc's header says. Blocks of any size can come from a heap that has room for them.
  bool HasMapping() const { return (static_cast<const size_t*>(start_)[-1] & 2) != 0; }

  const Kind kind_;
  void* start_ = nullptr;
  size_t allocated_ = 0;
  size_t offset_ = 0;
  unsigned char fill_ = 0;
};

// Reads a buffer for as long as it lives: while pages are replaced, and given back.
class Reader {
 public:
  explicit Reader(const Buffer& buffer)
      : thread_([&buffer](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            buffer.Check("a reader has seen other bytes");
          }
        }) {}

 private:
  std::jthread thread_;
};

std::optional<Reader> ReaderNowAndThen(const Buffer& buffer, Random& random) {
  return random() % 4 == 0 ? std::optional<Reader>(std::in_place, buffer) : std::nullopt;
}

#if defined(RNICD_OTHER_MALLOC)
// Nothing says which pages a block owns.
constexpr auto kKinds = std::to_array({Buffer::Kind::kMapping});
#else
constexpr auto kKinds =
    std::to_array({Buffer::Kind::kPool, Buffer::Kind::kBlock, Buffer::Kind::kPagesOfTheHeap, Buffer::Kind::kMapping});
#endif

// Null for what is refused.
fid_mr* Register(fid_domain* domain, const Buffer& buffer, uint64_t access) {
  fid_mr* region = nullptr;
  const int result = fi_mr_reg(domain, buffer.bytes(), buffer.size(), access, 0, 0, 0, &region, nullptr);
  Expect(result == 0 || (result == -FI_EOPNOTSUPP && !buffer.MustBeTaken()), fi_strerror(-result), buffer.size());
  Expect(result != 0 || buffer.MayBeTaken(), "pages are taken that others use", buffer.size());
  return result == 0 ? region : nullptr;
}

void Close(fid_mr* region) { Expect(fi_close(&region->fid) == 0, "a region that cannot be closed"); }

// Whether the buffer was one that the provider takes.
bool RegisterOne(fid_domain* domain, Random& random) {
  const auto fill = [&] { return static_cast<unsigned char>(random()); };
  Buffer buffer(kKinds[random() % kKinds.size()], random);
  buffer.Fill(fill());
  fid_mr* region = nullptr;
  {
    const std::optional<Reader> reader = ReaderNowAndThen(buffer, random);
    region = Register(domain, buffer, FI_SEND | FI_RECV | FI_READ | FI_WRITE);
  }
  buffer.Check("registering has changed a buffer");
  if (region == nullptr) {
    return false;
  }
  buffer.Fill(fill());
  fid_mr* const second = random() % 2 == 0 ? Register(domain, buffer, FI_REMOTE_WRITE) : nullptr;
  buffer.Check("a registered buffer has changed");
  {
    const std::optional<Reader> reader = ReaderNowAndThen(buffer, random);
    Close(region);
  }
  buffer.Check("closing has changed a buffer");
  if (second != nullptr) {
    buffer.Fill(fill());
    Close(second);
    buffer.Check("closing the second region has changed a buffer");
  }
  return true;
}

}  // namespace

void StressMemory(uint64_t seed, int registrations) {
  const Opened opened;
  std::atomic<bool> stop = false;
  std::atomic<int> left = registrations;
  std::vector<std::jthread> others;
  for (uint64_t index = 0; index < kBusyThreads; ++index) {
    others.emplace_back([seed, index, &stop] { UseHeap(seed * 100 + index, stop); });
  }
  others.emplace_back([seed, &stop] { Fork(seed * 100 + 98, stop); });
  std::vector<std::jthread> registrars;
  for (uint64_t index = 0; index < kRegistrars; ++index) {
    registrars.emplace_back([seed, index, &left, &opened] {
      Random random(seed * 100 + 50 + index);
      while (left > 0) {
        left -= RegisterOne(opened.domain, random) ? 1 : 0;
      }
    });
  }
  registrars.clear();
  stop = true;
}

}  // namespace rnicd::fi
