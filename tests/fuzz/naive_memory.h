#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/core/memory/mdl_chain.h"

// A naive implementation of the rules on chains and pages, to compare core's results with.
namespace rnicd::fuzz {

// A memory object. It cannot be registered unless sealed.
struct NaiveMemory {
  uint64_t bytes = 0;
  bool sealed = false;
  std::byte* first = nullptr;
};
using NaiveMemories = std::map<MemoryObjectId, NaiveMemory>;

using Runs = std::vector<std::span<std::byte>>;

// The range that a chain describes.
struct NaiveRange {
  uint64_t base = 0;
  Runs runs;
  // Start of each 4 KiB page that [base, base + length) touches, in order.
  std::vector<std::byte*> pages;
};

// Nullopt if the chain breaks a rule.
std::optional<NaiveRange> ReadChain(std::span<const MdlEntry> chain, uint64_t length, const NaiveMemories& memories);

// `length` bytes from byte `skip` of the first page on; adjacent pieces in memory are one run.
Runs CutPages(const std::vector<std::byte*>& pages, uint64_t skip, uint64_t length);

bool SameRuns(std::span<const std::span<std::byte>> one, std::span<const std::span<std::byte>> other);

// Registered pages, each as often as it is registered, and an owner's charges for them.
class NaivePins {
 public:
  void Add(const std::vector<std::byte*>& pages);
  void Remove(const std::vector<std::byte*>& pages);
  // Bytes: pinned() counts each page once, registered() as often as it is registered.
  uint64_t pinned() const;
  uint64_t registered() const { return registered_; }
  // Bytes of those pages that are not pinned yet.
  uint64_t Fresh(const std::vector<std::byte*>& pages) const;

 private:
  std::map<std::byte*, uint64_t> times_;
  uint64_t registered_ = 0;
};

}  // namespace rnicd::fuzz
