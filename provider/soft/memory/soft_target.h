#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "base/units.h"

namespace rnicd::provider {

// Kind of access that a transfer makes to the memory behind a key.
enum class SoftAccess : uint8_t {
  // Access of the key's owner through an SGE.
  kLocalRead,
  kLocalWrite,
  // The sink of a read.
  kReadSink,
  // Access of a peer.
  kRemoteRead,
  kRemoteWrite,
  // Access through a window, which has checked the rights itself.
  kThroughWindow,
};

// Origin of an access.
struct SoftAccessor {
  // Protection domain and queue pair on the memory's side of the connection.
  uint64_t domain = 0;
  uint64_t queue_pair = 0;
};

// Host bytes, in transfer order. Those of a usual request need no allocation.
using Pieces = absl::InlinedVector<std::span<std::byte>, 4>;

// Target of a key: a registered region or a bound window.
// Threads: safe.
class SoftTarget {
 public:
  virtual ~SoftTarget() = default;
  // Appends the bytes of [address, address + length) and keeps them until Unpin; otherwise changes nothing and returns
  // false.
  virtual bool Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
                   Pieces& pieces) = 0;
  virtual void Unpin() = 0;
  // Invalidation by a peer's SendAndInvalidate or a read's local invalidate; false if the target does not support it.
  virtual bool InvalidateByToken(const SoftAccessor& /*accessor*/) { return false; }
};

// One side of a transfer: pieces of memory, pinned for the lifetime of this object.
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

  // False when the target is null or refuses.
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
  absl::InlinedVector<std::shared_ptr<SoftTarget>, 4> targets_;
  Pieces pieces_;
};

// The bytes [offset, offset + length) of the pieces, which are not fewer.
Pieces Slice(const Pieces& pieces, uint64_t offset, uint64_t length);
// Bytes of this process. Only what may be written is copied to.
inline Pieces PiecesOf(std::string& bytes) { return {std::as_writable_bytes(std::span(bytes))}; }
inline Pieces PiecesOf(const std::string& bytes) { return PiecesOf(const_cast<std::string&>(bytes)); }

// Copies `length` bytes. The last byte of the target is written last, as IN_ORDER_DMA promises to a program that polls
// it.
void CopyInOrder(const Pieces& from, const Pieces& to, uint64_t length);

}  // namespace rnicd::provider
