#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

// Access to memory that another process writes at the same time, possibly with malicious values. Each function reads or
// writes every word once and returns a private copy, so that the value that is validated is the value that is used.
namespace rnicd::ring {

// An index or flag of the other side, with everything that it wrote before.
inline uint32_t LoadAcquire(uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
// Makes everything that was written before visible to a reader of the word.
inline void StoreRelease(uint32_t& word, uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}
// For values that need no ordering.
inline uint32_t LoadRelaxed(uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); }
inline void StoreRelaxed(uint32_t& word, uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

// One side stores its index and then loads the other's flag, the other stores its flag and then loads the index. All
// four in one order that both agree on, so that at least one of them sees what the other wrote: no wake-up is lost.
// Not release and acquire with fences between, which ThreadSanitizer does not model; they cost the same.
inline uint32_t LoadInOrder(uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_seq_cst); }
inline void StoreInOrder(uint32_t& word, uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_seq_cst);
}

// Copies words that the other side may be rewriting: every word of the copy is one that was there at some time.
inline void CopyWords(const uint64_t* shared, std::span<uint64_t> copy) {
  for (size_t index = 0; index < copy.size(); ++index) {
    // atomic_ref takes no const object before C++26.
    copy[index] = std::atomic_ref(const_cast<uint64_t&>(shared[index])).load(std::memory_order_relaxed);
  }
}

// A value of whole words, copied in this way.
template <typename T>
T CopyOf(const std::byte* shared) {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0);
  uint64_t words[sizeof(T) / sizeof(uint64_t)];
  CopyWords(reinterpret_cast<const uint64_t*>(shared), words);
  T copy;
  std::memcpy(&copy, words, sizeof(copy));
  return copy;
}

}  // namespace rnicd::ring
