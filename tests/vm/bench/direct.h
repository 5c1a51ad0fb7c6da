#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/vm/bench/rounds.h"

// A process without rnicd: plain libibverbs, and memory that it maps and faults in. Every failure exits the program.
namespace rnicd::vm_bench {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kSmallPage = 4 * kKiB;
inline constexpr uint64_t kHugePage = 2 * kMiB;

// The card that both sides use.
inline constexpr char kCard[] = "rxa";

// An open card with a protection domain.
class DirectCard {
 public:
  DirectCard();
  ~DirectCard();
  DirectCard(const DirectCard&) = delete;
  DirectCard& operator=(const DirectCard&) = delete;

  // Registers with every right except atomics.
  ibv_mr* Register(std::span<std::byte> bytes);
  static void Deregister(ibv_mr* region);

  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return pd_; }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

// Kind of memory behind a mapping.
enum class Source : uint8_t {
  // Anonymous memory, 4 KiB pages.
  kSmallPages,
  // Anonymous memory with pages of the kernel's choice: with transparent huge pages mostly 2 MiB.
  kAnyPages,
  // A shared mapping of a memory file, 4 KiB pages, like the memory that rnicd allocates.
  kFile,
  // Anonymous memory from the pool of 2 MiB pages.
  kHugePages,
};

// Memory of this process. All pages are present after Populate or Touch.
class OwnMemory {
 public:
  OwnMemory(Source source, uint64_t size);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Faults in all pages by one system call.
  static void Populate(std::span<std::byte> bytes);
  void Populate() { Populate(bytes_); }
  // Faults in each page by a write, as a program does.
  void Touch();

 private:
  std::span<std::byte> bytes_;
};

// Registers `count` adjacent pieces of `bytes` bytes, then deregisters them all.
void RegisterAndDeregister(DirectCard& card, std::span<std::byte> memory, uint64_t bytes, size_t count);

}  // namespace rnicd::vm_bench
