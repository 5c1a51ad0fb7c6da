#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"

namespace rnicd::provider {

// What a transfer wants of the memory behind a key.
enum class SoftAccess : uint8_t {
  // By the key's owner, through an SGE.
  kLocalRead,
  kLocalWrite,
  // The sink of a read.
  kReadSink,
  // By a peer.
  kRemoteRead,
  kRemoteWrite,
  // By a window, which has checked the rights itself.
  kThroughWindow,
};

// Through what the memory is reached.
struct SoftAccessor {
  // The protection domain, and the queue pair on the side of the memory.
  uint64_t domain = 0;
  uint64_t queue_pair = 0;
};

// Host bytes, to be taken in this order.
using Pieces = std::vector<std::span<std::byte>>;

// What a key leads to: a registered region or a bound window. Threads: safe.
class SoftTarget {
 public:
  virtual ~SoftTarget() = default;
  // Appends the bytes of [address, address + length) and keeps them until Unpin; or changes nothing and answers false.
  virtual bool Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
                   Pieces& pieces) = 0;
  virtual void Unpin() = 0;
  // What a peer's SendAndInvalidate or a read's local invalidate asks; false for what cannot be invalidated so.
  virtual bool InvalidateByToken(const SoftAccessor& /*accessor*/) { return false; }
};

// One side of a transfer: pieces of memory, pinned as long as this lives.
class SoftPins {
 public:
  SoftPins() = default;
  SoftPins(const SoftPins&) = delete;
  SoftPins& operator=(const SoftPins&) = delete;
  ~SoftPins() {
    for (const std::shared_ptr<SoftTarget>& target : targets_) {
      target->Unpin();
    }
  }

  // False for no target, and where the target refuses.
  bool Add(std::shared_ptr<SoftTarget> target, const SoftAccessor& accessor, SoftAccess access, VirtualAddress address,
           uint64_t length) {
    if (target == nullptr || !target->Pin(accessor, access, address, length, pieces_)) {
      return false;
    }
    targets_.push_back(std::move(target));
    return true;
  }
  void AddHost(std::span<std::byte> bytes) { pieces_.push_back(bytes); }

  const Pieces& pieces() const { return pieces_; }

 private:
  std::vector<std::shared_ptr<SoftTarget>> targets_;
  Pieces pieces_;
};

// Copies `length` bytes. The last byte of the target changes last: what IN_ORDER_DMA promises to whoever polls it.
void CopyInOrder(const Pieces& from, const Pieces& to, uint64_t length);

}  // namespace rnicd::provider
