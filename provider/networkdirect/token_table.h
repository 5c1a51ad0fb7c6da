#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "base/random.h"
#include "provider/networkdirect/card_range.h"

namespace rnicd::provider {

// A registration or window that a peer or a read can invalidate by token.
class NdInvalidatable {
 public:
  virtual ~NdInvalidatable() = default;
  // True when `token` was in force here and has now been invalidated. `arrived_at` is the number of the queue pair at
  // which a peer asked for it; empty if the owner wants it. A window refuses the peer of a queue pair that did not bind
  // it.
  virtual bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) = 0;
};

// Tokens of one role, local or remote, in a protection domain, and what they stand for. They are random numbers of the
// daemon's and never tokens of the card: those change with every registration, and never leave the daemon.
// Threads: safe.
class TokenTable {
 public:
  struct Entry {
    // Null for a token that reaches nothing.
    std::shared_ptr<const CardRange> range;
    // Set for a registration made by a request.
    std::weak_ptr<NdInvalidatable> owner;
  };

  // `random` outlives the table.
  explicit TokenTable(RandomSource& random) : random_(random) {}

  // A token that is not 0, is no other's until it is removed, and reaches nothing.
  uint32_t Reserve();
  // Gives a reserved token a meaning. Null: it reaches nothing from now on.
  void Set(uint32_t token, Entry entry);
  void Remove(uint32_t token);
  // An empty entry for an unknown token.
  Entry Find(uint32_t token) const;

 private:
  RandomSource& random_;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint32_t, Entry> entries_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
