#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "provider/engine/invalidatable.h"
#include "provider/networkdirect/memory/card_range.h"

namespace rnicd::provider {

// Tokens of one role, local or remote, in a protection domain, and what they stand for. They are random numbers of the
// daemon's and never tokens of the card: those change with every registration, and never leave the daemon.
// Threads: safe.
class TokenTable {
 public:
  struct Entry {
    // Null for a token that reaches nothing.
    std::shared_ptr<const CardRange> range;
    // Set for a registration made by a request.
    std::weak_ptr<Invalidatable> owner;
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
