#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/secrets/random.h"
#include "provider/engine/engine_fabric.h"
#include "provider/soft/net/soft_switch.h"
#include "provider/soft/net/soft_worker.h"
#include "provider/soft/soft_traffic.h"

namespace rnicd::provider {

// Shared by the cards of one provider: the queue pairs by address, what connects them and leads to other daemons, and
// the worker. An address is a random number, so it cannot be guessed.
// Threads: safe.
class SoftFabric : public EngineFabric {
 public:
  // `random` outlives the fabric. `network`: null where there are no other daemons.
  SoftFabric(RandomSource& random, std::unique_ptr<SoftWorker> worker, std::shared_ptr<SoftNetwork> network = nullptr)
      : random_(random),
        net_(random, *worker, network.get()),
        traffic_(*this, std::move(network)),
        worker_(std::move(worker)) {}

  SoftWorker& worker() { return *worker_; }
  SoftSwitch& net() { return net_; }
  SoftTraffic& traffic() { return traffic_; }
  // A number that no other queue pair has; never 0.
  uint64_t NewNumber();
  static std::string AddressOf(uint64_t number);

 private:
  RandomSource& random_;
  // Both outlive the worker's jobs.
  SoftSwitch net_;
  SoftTraffic traffic_;
  const std::unique_ptr<SoftWorker> worker_;
};

}  // namespace rnicd::provider
