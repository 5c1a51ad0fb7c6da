#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/vm/bench/rounds.h"

// The process that does everything itself: plain libibverbs, and memory that it maps and faults in. Whatever fails ends
// the program.
namespace rnicd::vm_bench {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kSmallPage = 4 * kKiB;
inline constexpr uint64_t kHugePage = 2 * kMiB;

// The card that both sides use.
inline constexpr char kCard[] = "rxa";

// An opened card with a protection domain.
class DirectCard {
 public:
  DirectCard();
  ~DirectCard();
  DirectCard(const DirectCard&) = delete;
  DirectCard& operator=(const DirectCard&) = delete;

  // With every right but atomics.
  ibv_mr* Register(std::span<std::byte> bytes);
  static void Deregister(ibv_mr* region);

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

// Where the pages of a mapping come from.
enum class Source : uint8_t {
  // Anonymous memory, 4 KiB pages.
  kSmallPages,
  // Anonymous memory as the kernel likes it: where transparent huge pages are on, mostly of 2 MiB.
  kAnyPages,
  // A memory file mapped shared, 4 KiB pages, as what rnicd gives out.
  kFile,
  // Anonymous memory of the pool of 2 MiB pages.
  kHugePages,
};

// Memory of this process. Every page is there once Populate or Touch was called.
class OwnMemory {
 public:
  OwnMemory(Source source, uint64_t size);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // All pages in one call of the kernel.
  static void Populate(std::span<std::byte> bytes);
  void Populate() { Populate(bytes_); }
  // A fault for each page, as a program's first write to it.
  void Touch();

 private:
  std::span<std::byte> bytes_;
};

// Registers `count` pieces of `bytes` bytes that lie side by side, then deregisters them all.
void RegisterAndDeregister(DirectCard& card, std::span<std::byte> memory, uint64_t bytes, size_t count);

}  // namespace rnicd::vm_bench
