#include "tests/simulation/invariants.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/simulation/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

std::string Who(const Tenant& tenant) { return "t" + std::to_string(tenant.number); }

// Reports a figure that is not what it should be.
void Compare(Scene& scene, const char* invariant, const std::string& what, uint64_t is, uint64_t should) {
  if (is != should) {
    scene.findings.Report(invariant, what + " is " + std::to_string(is) + " instead of " + std::to_string(should));
  }
}

void CompareCounts(Scene& scene, const std::string& whose, const core::Ledger& ledger, const Usage& usage) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    Compare(scene, resource == Resource::kPinnedBytes ? "PinnedBytesEqualHeldPages" : "CountsEqualHoldings",
            whose + "'s " + std::string(core::ResourceName(resource)), ledger.used(resource), usage[index]);
  }
}

template <typename T>
uint64_t Count(const Model& model, std::vector<std::shared_ptr<T>> Tenant::* list) {
  uint64_t count = 0;
  for (const auto& tenant : model.tenants) {
    count += ((*tenant).*list).size();
  }
  return count;
}

std::string_view StateName(const Region& region) {
  static constexpr std::string_view kNames[] = {"created",       "registering",  "registered",
                                                "deregistering", "initializing", "initialized"};
  const bool fast_registered = region.key != nullptr && region.key->active();
  return fast_registered ? "registered" : kNames[static_cast<size_t>(region.state)];
}

void CheckView(Scene& scene, const Region& region, const core::RegionView& view) {
  const bool normal = region.target != nullptr;
  const bool same = view.state == StateName(region) && view.fast_register == region.fast &&
                    (!normal || (view.base == region.target->base && view.length == region.target->length &&
                                 view.pages == region.pinned_pages));
  if (!same) {
    scene.findings.Report("RegionsAreWhatTheirOwnersMade", "mr" + std::to_string(region.number) + " is " +
                                                               std::string(view.state) + " instead of " +
                                                               std::string(StateName(region)));
  }
}

}  // namespace

void EveryPostCompletesOnce(Scene& scene) {
  DeliverCompletions(scene);
  for (const auto& pair : scene.model.queue_pairs) {
    if (!pair->due[0].empty() || !pair->due[1].empty()) {
      const provider::Completion& due = pair->due[0].empty() ? pair->due[1].front() : pair->due[0].front();
      scene.findings.Report("EveryPostCompletesOnce", "qp" + std::to_string(pair->number) + " did not report context " +
                                                          std::to_string(due.request_context) + " " +
                                                          std::string(NtStatusName(due.status)));
    }
  }
}

void PeersAreToldOnce(Scene& scene) {
  std::vector<uint64_t> told = scene.world.witness.peers_gone;
  for (const auto& pair : scene.model.queue_pairs) {
    const auto count = std::count(told.begin(), told.end(), pair->number);
    Compare(scene, "PeersAreToldOnce", "how often qp" + std::to_string(pair->number) + " was told",
            static_cast<uint64_t>(count), pair->peer_gone_due ? 1 : 0);
    std::erase(told, pair->number);
    pair->disconnect_waits = pair->disconnect_waits || (pair->peer_gone_due && !pair->closed);
    pair->peer_gone_due = false;
  }
  Compare(scene, "PeersAreToldOnce", "how many were told that are closed", told.size(), 0);
}

void CallbacksComeOnce(Scene& scene) { scene.mailbox.CheckCallbacksComeOnce(scene.findings); }

void JobsHaveACause(Scene& scene) {
  World& world = scene.world;
  Compare(scene, "JobsHaveACause", "the number of worker jobs", world.workers.jobs.size(),
          scene.model.worker_tasks.size());
  Compare(scene, "JobsHaveACause", "the number of reaper jobs", world.reapers.jobs.size(),
          scene.model.reaper_tasks.size());
  Compare(scene, "JobsHaveACause", "the number of card jobs", world.engine().jobs.size(), scene.card.landings.size());
}

void PinnedBytesEqualHeldPages(Scene& scene) {
  const auto pinned = static_cast<size_t>(Resource::kPinnedBytes);
  for (const auto& tenant : scene.model.tenants) {
    Compare(scene, "PinnedBytesEqualHeldPages", Who(*tenant) + "'s pinned_bytes",
            tenant->session->ledger().used(Resource::kPinnedBytes), scene.model.UsageOf(*tenant)[pinned]);
  }
}

void CountsEqualHoldings(Scene& scene) {
  for (const auto& tenant : scene.model.tenants) {
    CompareCounts(scene, Who(*tenant), tenant->session->ledger(), scene.model.UsageOf(*tenant));
  }
  CompareCounts(scene, "the node", *scene.world.node.ledger, scene.model.UsageOfNode());
}

void NoObjectWithoutOwner(Scene& scene) {
  const World& world = scene.world;
  const Witness::Living& living = world.witness.living;
  const char* const name = "NoObjectWithoutOwner";
  Compare(scene, name, "the card's adapters", living.adapters, Count(scene.model, &Tenant::adapters));
  Compare(scene, name, "the card's domains", living.domains, Count(scene.model, &Tenant::domains));
  Compare(scene, name, "the card's completion queues", living.completion_queues,
          Count(scene.model, &Tenant::completion_queues));
  Compare(scene, name, "the card's queue pairs", living.queue_pairs, Count(scene.model, &Tenant::queue_pairs));
  uint64_t mapped = 0;
  uint64_t sessions = 0;
  for (const auto& tenant : scene.model.tenants) {
    sessions += tenant->over ? 0 : 1;
    for (const auto& memory : tenant->memories) {
      mapped += memory->content.empty() ? 0 : 1;
    }
  }
  Compare(scene, name, "the number of mappings", world.os.live_mappings(), mapped);
  Compare(scene, name, "the number of sessions", world.registry.List().size(), sessions);
  const Instant now = world.clock.Now();
  std::erase_if(scene.model.tickets, [now](const Ticket& ticket) { return ticket.expiry <= now; });
  Compare(scene, name, "the number of tickets", world.tickets.size(), scene.model.tickets.size());
}

void NoTokenOutlivesItsRegion(Scene& scene) {
  uint64_t keys = 0;
  for (const auto& nic : scene.model.nics) {
    keys += nic->keys;
  }
  Compare(scene, "NoTokenOutlivesItsRegion", "the number of keys", scene.world.provider.live_regions(), keys);
}

void NoByteMovesWithoutRight(Scene& scene) {
  for (const auto& tenant : scene.model.tenants) {
    for (const auto& memory : tenant->memories) {
      if (memory->uncertain) {
        memory->content.assign(memory->real.begin(), memory->real.end());
        memory->uncertain = false;
      }
      if (memory->content.empty() ||
          std::memcmp(memory->content.data(), memory->real.data(), memory->content.size()) == 0) {
        continue;
      }
      const auto [is, should] = std::mismatch(memory->real.begin(), memory->real.end(), memory->content.begin());
      scene.findings.Report("NoByteMovesWithoutRight", "byte " + std::to_string(is - memory->real.begin()) + " of m" +
                                                           std::to_string(memory->number) + " of " + Who(*tenant) +
                                                           " differs");
    }
  }
}

void RegionsAreWhatTheirOwnersMade(Scene& scene) {
  for (const auto& tenant : scene.model.tenants) {
    const auto views = tenant->session->ViewRegions();
    uint64_t listed = 0;
    for (const auto& region : tenant->regions) {
      if (region->closing.begun) {
        continue;
      }
      ++listed;
      for (const auto& [id, view] : views) {
        if (id == region->id) {
          CheckView(scene, *region, view);
        }
      }
    }
    Compare(scene, "RegionsAreWhatTheirOwnersMade", "the number of regions of " + Who(*tenant), views.size(), listed);
  }
}

void EndedSessionsHoldNothing(Scene& scene) {
  for (const auto& tenant : scene.model.tenants) {
    if (!tenant->over) {
      continue;
    }
    core::Session& session = *tenant->session;
    const bool silent = session.ended() && FailedWith(session.Begin().status(), ErrorReason::SESSION_ENDING);
    bool empty = true;
    for (size_t index = 0; index < core::kResourceCount; ++index) {
      empty = empty && session.ledger().used(static_cast<Resource>(index)) == 0;
    }
    if (!silent || !empty) {
      scene.findings.Report("EndedSessionsHoldNothing",
                            Who(*tenant) + (silent ? " still holds something" : " still answers"));
    }
  }
}

void CheckInvariants(Scene& scene) {
  static constexpr void (*kAll[])(Scene&) = {
      EveryPostCompletesOnce,    PeersAreToldOnce,
      CallbacksComeOnce,         JobsHaveACause,
      PinnedBytesEqualHeldPages, CountsEqualHoldings,
      NoObjectWithoutOwner,      NoTokenOutlivesItsRegion,
      NoByteMovesWithoutRight,   RegionsAreWhatTheirOwnersMade,
      EndedSessionsHoldNothing,
  };
  for (const auto& invariant : kAll) {
    if (!scene.findings.any()) {
      invariant(scene);
    }
  }
  if (!scene.world.witness.late.empty()) {
    scene.findings.Report("EveryPostCompletesOnce",
                          scene.world.witness.late.front() + " reported after it was shut down");
  }
  scene.world.witness.Forget();
  std::erase_if(scene.model.queue_pairs, [](const auto& pair) { return pair->closed; });
}

void NothingIsLeft(Scene& scene) {
  const char* const name = "NothingIsLeft";
  World& world = scene.world;
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    Compare(scene, name, "the node's " + std::string(core::ResourceName(resource)), world.node.ledger->used(resource),
            0);
  }
  Compare(scene, name, "the number of keys", world.provider.live_regions(), 0);
  Compare(scene, name, "the number of mappings", world.os.live_mappings(), 0);
  Compare(scene, name, "the number of sessions", world.registry.List().size(), 0);
  Compare(scene, name, "the number of tickets", world.tickets.size(), 0);
  Compare(scene, name, "the card's adapters", world.witness.living.adapters, 0);
  Compare(scene, name, "the card's queue pairs", world.witness.living.queue_pairs, 0);
  Compare(scene, name, "the number of ended sessions", world.observer.ended, world.observer.opened);
  if (!world.registry.WaitUntilEmpty(Instant())) {
    scene.findings.Report(name, "the registry is not empty");
  }
}

}  // namespace rnicd::simulation
