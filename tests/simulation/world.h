#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>

#include "base/os_fake.h"
#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/manual.h"
#include "tests/simulation/witness.h"

namespace rnicd::simulation {

// What one episode is like.
struct EpisodeOptions {
  provider::SoftOptions soft;
  core::NodeLimits limits;
  std::chrono::milliseconds ticket_lifetime{1000};
  // Of a hundred choices so many are wrong on purpose.
  uint64_t carelessness = 5;
  // Sessions that live side by side.
  uint64_t sessions = 6;
};

EpisodeOptions DrawOptions(Dice& dice);

// Counts what core says of sessions.
class SessionCounter final : public core::Observer {
 public:
  void OnSessionOpened(SessionId, const core::Caller&) override { ++opened; }
  void OnSessionEnded(SessionId, const core::Caller&, core::EndCause, const core::Reclaimed&) override { ++ended; }

  uint64_t opened = 0;
  uint64_t ended = 0;
};

// Core and the soft card, with everything under and around them in the simulation's hands: chance, time, failures, and
// the moment at which each job runs.
class World {
 public:
  World(const EpisodeOptions& options, uint64_t seed, Canary canary);

 private:
  std::unique_ptr<ManualEngine> NewEngine();
  // Declared first because the card takes it; it belongs to the card.
  ManualEngine* engine_ = nullptr;

 public:
  SeededRandom random;
  ManualClock clock;
  FaultyOs os;
  Witness witness;
  provider::SoftProvider soft;
  WitnessProvider watched;
  provider::FaultPlan plan;
  provider::FaultInjectingProvider provider;
  ManualExecutor workers;
  ManualExecutor reapers;
  core::TicketTable tickets;
  SessionCounter observer;
  core::Node node;
  core::SessionRegistry registry;

  ManualEngine& engine() { return *engine_; }
};

}  // namespace rnicd::simulation
