#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/secrets/random.h"
#include "provider/engine/engine_fabric.h"
#include "provider/soft/net/soft_switch.h"
#include "provider/soft/net/soft_worker.h"

namespace rnicd::provider {

// Shared by the cards of one provider: the queue pairs by address, what connects them, and the worker. An address is a
// random number, so it cannot be guessed. Threads: safe.
class SoftFabric : public EngineFabric {
 public:
  // `random` outlives the fabric.
  SoftFabric(RandomSource& random, std::unique_ptr<SoftWorker> worker)
      : random_(random), net_(random, *worker), worker_(std::move(worker)) {}

  SoftWorker& worker() { return *worker_; }
  SoftSwitch& net() { return net_; }
  // A number that no other queue pair has; never 0.
  uint64_t NewNumber();
  static std::string AddressOf(uint64_t number);

 private:
  RandomSource& random_;
  // Outlives the worker's jobs.
  SoftSwitch net_;
  const std::unique_ptr<SoftWorker> worker_;
};

}  // namespace rnicd::provider
