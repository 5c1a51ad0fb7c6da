#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/secrets/random.h"
#include "provider/engine/engine_fabric.h"
#include "provider/soft/soft_engine.h"

namespace rnicd::provider {

// Shared by the cards of one provider: the queue pairs by address, and the engine. An address is a random number, so it
// cannot be guessed.
// Threads: safe.
class SoftFabric : public EngineFabric {
 public:
  // `random` outlives the fabric.
  SoftFabric(RandomSource& random, std::unique_ptr<SoftEngine> engine) : random_(random), engine_(std::move(engine)) {}

  SoftEngine& engine() { return *engine_; }
  // A number that no other queue pair has; never 0.
  uint64_t NewNumber();
  static std::string AddressOf(uint64_t number);

 private:
  RandomSource& random_;
  const std::unique_ptr<SoftEngine> engine_;
};

}  // namespace rnicd::provider
