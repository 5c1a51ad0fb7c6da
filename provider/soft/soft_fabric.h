#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/random.h"
#include "provider/soft/soft_engine.h"

namespace rnicd::provider {

class SoftEndpoint;

// Shared by the cards of one provider: the queue pairs by address, and the engine. An address is a random number, so it
// cannot be guessed. Threads: safe.
class SoftFabric {
 public:
  // `random` outlives the fabric.
  SoftFabric(RandomSource& random, std::unique_ptr<SoftEngine> engine) : random_(random), engine_(std::move(engine)) {}

  SoftEngine& engine() { return *engine_; }
  // A number that no other queue pair has; never 0.
  uint64_t NewNumber();
  void Add(uint64_t number, std::weak_ptr<SoftEndpoint> endpoint);
  void Remove(uint64_t number);
  // Null when no queue pair has this address.
  std::shared_ptr<SoftEndpoint> Find(std::string_view address) const;
  static std::string AddressOf(uint64_t number);

 private:
  RandomSource& random_;
  const std::unique_ptr<SoftEngine> engine_;
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, std::weak_ptr<SoftEndpoint>> endpoints_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
