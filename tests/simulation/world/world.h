#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/system/faulty_os.h"
#include "daemon/core/session/wired_node_test.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"
#include "tests/simulation/world/dice.h"
#include "tests/simulation/world/forgetful_watch.h"
#include "tests/simulation/world/manual.h"
#include "tests/simulation/world/manual_rings.h"
#include "tests/simulation/world/sealing_os.h"
#include "tests/simulation/world/witness.h"

namespace rnicd::simulation {

// Options of one episode.
struct EpisodeOptions {
  provider::SoftOptions soft;
  core::NodeLimits limits;
  // The initial policy; without one each uid is a tenant.
  core::Policy policy;
  bool own_policy = false;
  // Whether calls are counted against rates.
  bool rates = false;
  std::chrono::milliseconds ticket_lifetime{1000};
  // Percentage of choices that are wrong on purpose.
  uint64_t carelessness = 5;
  // Maximum number of concurrent sessions.
  uint64_t sessions = 6;
};

EpisodeOptions DrawOptions(Dice& dice);

// A decision as in the audit log, without its human-readable part.
std::string TextOf(const core::Decision& decision);

// Records core's reports about sessions and its decisions.
class Listener final : public core::Observer {
 public:
  void Observe(const core::Observation& observation) override {
    opened += observation.As<core::SessionOpened>() != nullptr ? 1 : 0;
    ended += observation.As<core::SessionEnded>() != nullptr ? 1 : 0;
    if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
      decisions.push_back(TextOf(*decision));
    }
  }

  uint64_t opened = 0;
  uint64_t ended = 0;
  // Decisions of this step.
  std::vector<std::string> decisions;
};

// The dependencies of the node, controlled by the simulation: random numbers, time, failures, and the moment at which
// each job runs.
class Ground {
 public:
  Ground(const provider::SoftOptions& options, uint64_t seed, Canary canary);

 private:
  std::unique_ptr<ManualWorker> NewEngine();
  // Declared first because the card's constructor takes it; owned by the card.
  ManualWorker* engine_ = nullptr;

 public:
  SeededRandom random;
  ManualClock clock;
  Witness witness;
  SealingOs kernel;
  ForgetfulWatch forgetful_watch;
  FaultyOs os;
  provider::SoftProvider soft;
  WitnessProvider watched;
  provider::FaultPlan plan;
  provider::FaultInjectingProvider provider;
  ManualExecutor workers;
  ManualExecutor reapers;
  Listener observer;
  ManualRings rings;

  ManualWorker& engine() { return *engine_; }
};

// Core and the soft card, with everything under and around them controlled by the simulation.
class World : public Ground, public core::WiredNode {
 public:
  World(const EpisodeOptions& options, uint64_t seed, Canary canary);
};

}  // namespace rnicd::simulation
