#include "tests/simulation/world.h"

#include "base/units.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

// The limits of a session: enough for all kinds of things to happen, and near enough to be hit. In some episodes one in
// three is so tight that it is hit all the time.
core::Limits DrawSessionLimits(Dice& dice) {
  struct Row {
    Resource resource;
    uint64_t usual;
    uint64_t tight;
  };
  static constexpr Row kRows[] = {
      {Resource::kAdapters, 3, 1},
      {Resource::kProtectionDomains, 4, 2},
      {Resource::kMemoryObjects, 5, 3},
      {Resource::kMemoryBytes, 12 * kNdkPageBytes, 5 * kNdkPageBytes},
      {Resource::kRegions, 8, 4},
      {Resource::kPinnedBytes, 32 * kNdkPageBytes, 8 * kNdkPageBytes},
      {Resource::kPendingRequests, 4, 1},
      {Resource::kLogicalMappings, 4, 2},
      {Resource::kFastRegisterPages, 32, 8},
      {Resource::kCompletionQueues, 4, 2},
      {Resource::kCqEntries, 96, 24},
      {Resource::kQueuePairs, 6, 3},
      {Resource::kQueueEntries, 128, 40},
      {Resource::kWindows, 4, 2},
      {Resource::kPostedPages, 40, 6},
  };
  const bool tight = dice.Chance(40);
  core::Limits limits;
  for (const Row& row : kRows) {
    const bool tight_here = tight && dice.Chance(33);
    limits[row.resource] = tight_here ? row.tight : row.usual;
  }
  return limits;
}

}  // namespace

EpisodeOptions DrawOptions(Dice& dice) {
  EpisodeOptions options;
  options.soft.adapters = 2;
  options.soft.max_regions = dice.Chance(25) ? dice.Between(6, 30) : 0;
  options.soft.max_fast_register_pages = 16;
  options.soft.max_registration_bytes = dice.Chance(30) ? 3 * kNdkPageBytes : uint64_t{1} << 40;
  options.soft.read_delay = std::chrono::microseconds(dice.Chance(50) ? 10 : 0);
  for (const uint32_t flag : {kAdapterFlagReadSinkNotRequired, kAdapterFlagReadLocalInvalidate, kAdapterFlagCqResize}) {
    if (dice.Chance(25)) {
      options.soft.adapter_flags &= ~flag;
    }
  }
  options.limits.session = DrawSessionLimits(dice);
  if (dice.Chance(30)) {
    options.limits.uid[Resource::kPinnedBytes] = 40 * kNdkPageBytes;
    options.limits.uid[Resource::kSessions] = 3;
  }
  if (dice.Chance(30)) {
    options.limits.node[Resource::kPinnedBytes] = 60 * kNdkPageBytes;
    options.limits.node[Resource::kMemoryBytes] = 40 * kNdkPageBytes;
  }
  const std::vector<uint64_t> thresholds = {kNdkPageBytes, 2 * kNdkPageBytes, 2 * kNdkPageBytes, 3 * kNdkPageBytes,
                                            1000 * kNdkPageBytes};
  options.limits.pending_threshold_bytes = dice.Pick(thresholds);
  const std::vector<uint64_t> carelessness = {0, 1, 2, 5, 12};
  options.carelessness = dice.Pick(carelessness);
  options.sessions = dice.Between(2, 8);
  return options;
}

std::unique_ptr<ManualEngine> World::NewEngine() {
  auto engine = std::make_unique<ManualEngine>();
  engine_ = engine.get();
  return engine;
}

World::World(const EpisodeOptions& options, uint64_t seed, Canary canary)
    : random(seed),
      os(LinuxOs()),
      witness(canary),
      soft(options.soft, random, NewEngine()),
      watched(soft, witness),
      provider(watched, plan),
      tickets(random, clock, options.ticket_lifetime),
      node{.os = os,
           .clock = clock,
           .random = random,
           .provider = provider,
           .observer = observer,
           .workers = workers,
           .reapers = reapers,
           .tickets = tickets,
           .limits = options.limits,
           .ledger = std::make_shared<core::Ledger>(options.limits.node, nullptr),
           .started = clock.Now()},
      registry(node) {}

}  // namespace rnicd::simulation
