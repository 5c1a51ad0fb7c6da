#include "tests/simulation/world/world.h"

#include "base/status.h"
#include "base/system/os.h"
#include "base/units.h"
#include "tests/simulation/world/draw_policy.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

// Limits of a session: high enough for every kind of step, and low enough to be hit. In some episodes one limit in
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
      {Resource::kPinnedBytes, 9 * kNdkPageBytes, 4 * kNdkPageBytes},
      {Resource::kPendingRequests, 4, 1},
      {Resource::kLogicalMappings, 4, 2},
      {Resource::kFastRegisterPages, 32, 8},
      {Resource::kCompletionQueues, 4, 2},
      {Resource::kCqEntries, 96, 24},
      {Resource::kQueuePairs, 6, 3},
      {Resource::kQueueEntries, 128, 40},
      {Resource::kWindows, 4, 2},
      {Resource::kPostedPages, 40, 6},
      {Resource::kRegisteredBytes, 32 * kNdkPageBytes, 8 * kNdkPageBytes},
      {Resource::kLogicalPages, 10, 3},
      {Resource::kHeapBytes, 64 * kNdkPageBytes, 24 * kNdkPageBytes},
      {Resource::kRings, 1, 1},
  };
  const bool tight = dice.Chance(40);
  core::Limits limits;
  for (const Row& row : kRows) {
    const bool tight_here = tight && dice.Chance(33);
    limits[row.resource] = tight_here ? row.tight : row.usual;
  }
  return limits;
}

core::Limits DrawUidLimits(Dice& dice) {
  core::Limits limits;
  if (dice.Chance(30)) {
    limits[Resource::kPinnedBytes] = 14 * kNdkPageBytes;
    limits[Resource::kRegisteredBytes] = 40 * kNdkPageBytes;
    limits[Resource::kSessions] = 3;
    limits[Resource::kHeapBytes] = 100 * kNdkPageBytes;
  }
  return limits;
}

core::Limits DrawNodeLimits(Dice& dice) {
  core::Limits limits;
  if (dice.Chance(30)) {
    limits[Resource::kPinnedBytes] = 24 * kNdkPageBytes;
    limits[Resource::kRegisteredBytes] = 60 * kNdkPageBytes;
    limits[Resource::kMemoryBytes] = 40 * kNdkPageBytes;
    limits[Resource::kHeapBytes] = 100 * kNdkPageBytes;
  }
  if (dice.Chance(15)) {
    limits[Resource::kSessions] = 4;
  }
  return limits;
}

}  // namespace

std::string TextOf(const core::Decision& decision) {
  std::string text(decision.what);
  text += decision.caller != nullptr ? " by " + std::to_string(decision.caller->process.low) : "";
  text += " tenant " + std::string(decision.tenant) + " session " + std::to_string(decision.session.value);
  text += " of " + decision.object + ", " + std::string(decision.note) + ": ";
  return text + (decision.status.ok() ? "ok" : std::string(RowOf(ErrorInfoOf(decision.status).reason).name));
}

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
  options.limits.node = DrawNodeLimits(dice);
  options.rates = dice.Chance(20);
  options.own_policy = options.rates || dice.Chance(45);
  options.policy =
      options.own_policy ? DrawPolicy(dice, options.rates) : core::OneTenantForEachUid(DrawUidLimits(dice));
  const std::vector<uint64_t> thresholds = {kNdkPageBytes, 2 * kNdkPageBytes, 2 * kNdkPageBytes, 3 * kNdkPageBytes,
                                            1000 * kNdkPageBytes};
  options.limits.pending_threshold_bytes = dice.Pick(thresholds);
  const std::vector<uint64_t> carelessness = {0, 1, 2, 5, 12};
  options.carelessness = dice.Pick(carelessness);
  options.sessions = dice.Between(2, 8);
  return options;
}

std::unique_ptr<ManualWorker> Ground::NewEngine() {
  auto engine = std::make_unique<ManualWorker>();
  engine_ = engine.get();
  return engine;
}

Ground::Ground(const provider::SoftOptions& options, uint64_t seed, Canary canary)
    : random(seed),
      witness(canary),
      kernel(SystemOs(), witness),
      os(kernel),
      soft(options, random, NewEngine()),
      watched(soft, witness),
      provider(watched, plan),
      rings(witness) {}

World::World(const EpisodeOptions& options, uint64_t seed, Canary canary)
    : Ground(options.soft, seed, canary),
      WiredNode({.os = os,
                 .clock = clock,
                 .random = random,
                 .provider = provider,
                 .observer = observer,
                 .workers = workers,
                 .reapers = reapers,
                 .limits = options.limits,
                 .policy = options.policy,
                 .ticket_lifetime = options.ticket_lifetime,
                 .watch = &forgetful_watch}) {
  node.rings = &rings;
}

}  // namespace rnicd::simulation
