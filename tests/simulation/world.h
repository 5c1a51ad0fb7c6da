#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/os_fake.h"
#include "daemon/core/wired_node_test.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/manual.h"
#include "tests/simulation/sealing_os.h"
#include "tests/simulation/witness.h"

namespace rnicd::simulation {

// What one episode is like.
struct EpisodeOptions {
  provider::SoftOptions soft;
  core::NodeLimits limits;
  // At the beginning; without a policy of its own each uid is a tenant.
  core::Policy policy;
  bool own_policy = false;
  // Whether calls are counted.
  bool rates = false;
  std::chrono::milliseconds ticket_lifetime{1000};
  // Of a hundred choices so many are wrong on purpose.
  uint64_t carelessness = 5;
  // Sessions that live side by side.
  uint64_t sessions = 6;
};

EpisodeOptions DrawOptions(Dice& dice);

// A decision as it would stand in the audit log, without what is for people only.
std::string TextOf(const core::Decision& decision);

// Keeps what core says of sessions and decides.
class Listener final : public core::Observer {
 public:
  void OnSessionOpened(SessionId, const core::Caller&) override { ++opened; }
  void OnSessionEnded(SessionId, const core::Caller&, core::EndCause, const core::Reclaimed&) override { ++ended; }
  void OnDecision(const core::Decision& decision) override { decisions.push_back(TextOf(decision)); }

  uint64_t opened = 0;
  uint64_t ended = 0;
  // Of this step.
  std::vector<std::string> decisions;
};

// What the node stands on: chance, time, failures, and the moment at which each job runs.
class Ground {
 public:
  Ground(const provider::SoftOptions& options, uint64_t seed, Canary canary);

 private:
  std::unique_ptr<ManualEngine> NewEngine();
  // Declared first because the card takes it; it belongs to the card.
  ManualEngine* engine_ = nullptr;

 public:
  SeededRandom random;
  ManualClock clock;
  Witness witness;
  SealingOs kernel;
  FaultyOs os;
  provider::SoftProvider soft;
  WitnessProvider watched;
  provider::FaultPlan plan;
  provider::FaultInjectingProvider provider;
  ManualExecutor workers;
  ManualExecutor reapers;
  Listener observer;

  ManualEngine& engine() { return *engine_; }
};

// Core and the soft card, with everything under and around them in the simulation's hands.
class World : public Ground, public core::WiredNode {
 public:
  World(const EpisodeOptions& options, uint64_t seed, Canary canary);
};

}  // namespace rnicd::simulation
