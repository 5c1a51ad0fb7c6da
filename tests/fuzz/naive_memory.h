#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/core/mdl_chain.h"

// The rules on chains and pages once more, as plainly as they can be said, to hold core's answers against.
namespace rnicd::fuzz {

// A memory object. Not sealed, it cannot be registered.
struct NaiveMemory {
  uint64_t bytes = 0;
  bool sealed = false;
  std::byte* first = nullptr;
};
using NaiveMemories = std::map<MemoryObjectId, NaiveMemory>;

using Runs = std::vector<std::span<std::byte>>;

// What a chain means.
struct NaiveRange {
  uint64_t base = 0;
  Runs runs;
  // One for each page of 4 KiB that [base, base + length) touches, in order: where it begins.
  std::vector<std::byte*> pages;
};

// Nothing when the chain breaks a rule.
std::optional<NaiveRange> ReadChain(std::span<const core::MdlEntry> chain, uint64_t length,
                                    const NaiveMemories& memories);

// `length` bytes from byte `skip` of the first page on; pieces that lie together in memory are one run.
Runs CutPages(const std::vector<std::byte*>& pages, uint64_t skip, uint64_t length);

bool SameRuns(const Runs& one, const Runs& other);

// Pages that are registered, each as often as it is, and what an owner pays for them.
class NaivePins {
 public:
  void Add(const std::vector<std::byte*>& pages);
  void Remove(const std::vector<std::byte*>& pages);
  // Bytes: each page once; and each as often as it is registered.
  uint64_t pinned() const;
  uint64_t registered() const { return registered_; }
  // Of the pages, bytes that are not pinned yet.
  uint64_t Fresh(const std::vector<std::byte*>& pages) const;

 private:
  std::map<std::byte*, uint64_t> times_;
  uint64_t registered_ = 0;
};

}  // namespace rnicd::fuzz
