#include "tests/simulation/invariants.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

std::string Who(const Client& client) { return "s" + std::to_string(client.number); }
std::string Who(const Tenant& tenant) { return "tenant " + tenant.name; }

// Reports a figure that differs from the expected one. `what` returns its name, which is rarely needed.
template <typename What>
void Compare(Scene& scene, const char* invariant, const What& what, uint64_t is, uint64_t should) {
  if (is != should) {
    std::string name;
    if constexpr (std::is_invocable_v<What>) {
      name = what();
    } else {
      name = what;
    }
    scene.findings.Report(invariant, name + " is " + std::to_string(is) + " instead of " + std::to_string(should));
  }
}

// An owner's ledger figures and their expected values.
struct Count {
  std::string whose;
  const core::Ledger& ledger;
  Usage usage;
};
using TenantList = std::vector<std::shared_ptr<core::Tenant>>;

// The listed tenants, those of grants that are over apart.
struct ListedTenants {
  TenantList open;
  TenantList over;
};

ListedTenants TenantsOf(const Scene& scene) {
  ListedTenants listed;
  for (const auto& tenant : scene.world.tenants.Tenants()) {
    (tenant->closed() ? listed.over : listed.open).push_back(tenant);
  }
  return listed;
}

std::vector<Count> AllCounts(const Scene& scene) {
  std::vector<Count> counts;
  const auto tenants = scene.model.tenants.All();
  const auto usage_of = [&](const core::Tenant& tenant) {
    const auto known = tenants.find(tenant.name());
    return known != tenants.end() ? scene.model.UsageOf(*known->second) : Usage{};
  };
  for (const auto& tenant : TenantsOf(scene).open) {
    counts.push_back({"tenant " + tenant->name(), *tenant->ledger(), usage_of(*tenant)});
  }
  for (const auto& client : scene.model.clients) {
    counts.push_back({Who(*client), client->session->ledger(), Model::UsageOf(*client)});
    // The model no longer has the tenant of a grant that is over.
    const core::Tenant& tenant = client->session->tenant();
    if (tenant.closed()) {
      counts.push_back({Who(*client->tenant), *tenant.ledger(), scene.model.UsageOf(*client->tenant)});
    }
  }
  counts.push_back({"the node", *scene.world.node.ledger, scene.model.UsageOfNode()});
  return counts;
}

void CompareCount(Scene& scene, const char* invariant, const Count& count, Resource resource) {
  const auto what = [&] { return count.whose + "'s " + std::string(core::ResourceName(resource)); };
  Compare(scene, invariant, what, count.ledger.used(resource), count.usage[static_cast<size_t>(resource)]);
}

bool SameLimits(const core::Ledger& ledger, const core::Limits& limits) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (ledger.limit(resource) != limits[resource]) {
      return false;
    }
  }
  return true;
}

template <typename T>
uint64_t CountAll(const Model& model, std::vector<std::shared_ptr<T>> Client::* list) {
  uint64_t count = 0;
  for (const auto& client : model.clients) {
    count += ((*client).*list).size();
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
                                 view.pages == region.pages.size()));
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
      const provider::Completion& due = (pair->due[0].empty() ? pair->due[1] : pair->due[0]).front().completion;
      scene.findings.Report("EveryPostCompletesOnce", "qp" + std::to_string(pair->number) + " did not report context " +
                                                          std::to_string(due.request_context) + " " +
                                                          std::string(NtStatusName(due.status)));
    }
  }
}

void MappedQueuesSayWhatHappened(Scene& scene) {
  const char* const name = "MappedQueuesSayWhatHappened";
  for (const auto& client : scene.model.clients) {
    for (const auto& queue : client->completion_queues) {
      if (queue->mapped != nullptr && !queue->closing.begun) {
        const auto notifications = [&] { return "the notifications of cq" + std::to_string(queue->number); };
        const auto status = [&] { return "the status of cq" + std::to_string(queue->number); };
        Compare(scene, name, notifications, queue->mapped->notifications(), queue->notifications);
        Compare(scene, name, status, queue->mapped->status(),
                queue->overrun ? static_cast<uint32_t>(NtStatus::kBufferOverflow) : 0);
      }
    }
  }
}

void PeersAreToldOnce(Scene& scene) {
  std::vector<uint64_t> told = scene.world.witness.peers_gone;
  for (const auto& pair : scene.model.queue_pairs) {
    const auto count = std::count(told.begin(), told.end(), pair->number);
    const auto what = [&] { return "how often qp" + std::to_string(pair->number) + " was told"; };
    Compare(scene, "PeersAreToldOnce", what, static_cast<uint64_t>(count), pair->peer_gone_due ? 1 : 0);
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

void CountsEqualHoldings(Scene& scene) {
  const std::vector<Count> counts = AllCounts(scene);
  for (const Count& count : counts) {
    CompareCount(scene, "PinnedBytesEqualHeldPages", count, Resource::kPinnedBytes);
  }
  for (const Count& count : counts) {
    for (size_t index = 0; index < core::kResourceCount; ++index) {
      CompareCount(scene, "CountsEqualHoldings", count, static_cast<Resource>(index));
    }
  }
}

void TenantsAreThoseOfThePolicy(Scene& scene) {
  const char* const name = "TenantsAreThoseOfThePolicy";
  const auto tenants = scene.model.tenants.All();
  const auto [listed, over] = TenantsOf(scene);
  Compare(scene, name, "the number of tenants", listed.size(), tenants.size());
  for (const auto& tenant : listed) {
    const auto known = tenants.find(tenant->name());
    if (known == tenants.end() || tenant->rule() != known->second->rule ||
        !SameLimits(*tenant->ledger(), known->second->limits.tenant)) {
      scene.findings.Report(name, "tenant " + tenant->name() + " is not there or is another one");
      return;
    }
    auto& seen = scene.model.seen;
    const auto is_it = [&tenant](const auto& each) { return each.lock() == tenant; };
    if (std::none_of(seen.begin(), seen.end(), is_it)) {
      seen.push_back(tenant);
    }
  }
  for (const auto& client : scene.model.clients) {
    const core::Tenant& is = client->session->tenant();
    const auto same = [&is](const auto& each) { return each->name() != is.name() || each.get() == &is; };
    // While it holds something it is listed, once, also when its grant is over.
    const auto times = std::count_if(over.begin(), over.end(), [&is](const auto& each) { return each.get() == &is; });
    const bool only_one =
        is.closed() ? times == (is.ledger()->empty() ? 0 : 1) : std::all_of(listed.begin(), listed.end(), same);
    if (!only_one || is.name() != client->tenant->name || !SameLimits(client->session->ledger(), client->limits)) {
      scene.findings.Report(name, Who(*client) + " is of tenant " + is.name() + " or has other limits");
    }
  }
}

void GrantsAreThoseThatAreNotOver(Scene& scene) {
  const char* const name = "GrantsAreThoseThatAreNotOver";
  const auto& grants = scene.model.tenants.grants();
  const auto listed = scene.world.tenants.Grants();
  Compare(scene, name, "the number of grants", listed.size(), grants.size());
  for (const core::GrantView& view : listed) {
    const auto known = grants.find(view.id);
    const bool same = known != grants.end() && view.tenant->pod_uid() == known->second.pod_uid &&
                      view.expiry == known->second.expiry && view.tenant->name() == known->second.tenant->name &&
                      view.tenant->grant() == view.id && !view.tenant->closed();
    if (!same) {
      scene.findings.Report(name, "grant " + std::to_string(view.id.value) + " is not there or is another one");
    }
  }
}

// "... : REASON" matches if "... : REASON or OTHER" is expected.
static bool MatchesExpected(const std::string& is, const std::string& should) {
  const size_t reason = is.rfind(' ') + 1;
  const std::string alternatives = " or " + should.substr(std::min(reason, should.size())) + " or ";
  return is.substr(0, reason) == should.substr(0, reason) &&
         alternatives.find(" or " + is.substr(reason) + " or ") != std::string::npos;
}

void EveryDecisionIsTold(Scene& scene) {
  const std::vector<std::string>& is = scene.world.observer.decisions;
  const std::vector<std::string>& should = scene.model.decisions;
  Compare(scene, "EveryDecisionIsTold", "the number of decisions", is.size(), should.size());
  for (size_t index = 0; index < std::min(is.size(), should.size()); ++index) {
    if (!MatchesExpected(is[index], should[index])) {
      scene.findings.Report("EveryDecisionIsTold", is[index] + " instead of " + should[index]);
    }
  }
}

void NoObjectWithoutOwner(Scene& scene) {
  const World& world = scene.world;
  const Witness::Living& living = world.witness.living;
  const char* const name = "NoObjectWithoutOwner";
  Compare(scene, name, "the card's adapters", living.adapters, CountAll(scene.model, &Client::adapters));
  Compare(scene, name, "the card's domains", living.domains, CountAll(scene.model, &Client::domains));
  Compare(scene, name, "the card's completion queues", living.completion_queues,
          CountAll(scene.model, &Client::completion_queues));
  Compare(scene, name, "the card's queue pairs", living.queue_pairs, CountAll(scene.model, &Client::queue_pairs));
  uint64_t mapped = 0;
  uint64_t sessions = 0;
  uint64_t rings = 0;
  for (const auto& client : scene.model.clients) {
    sessions += client->over ? 0 : 1;
    for (const auto& memory : client->memories) {
      mapped += memory->real.empty() ? 0 : 1;
    }
    rings += client->ring != nullptr ? 1 : 0;
    for (const auto& queue : client->completion_queues) {
      mapped += queue->mapped != nullptr ? 1 : 0;
    }
  }
  Compare(scene, name, "the number of mappings", world.os.live_mappings(), mapped + rings);
  Compare(scene, name, "the number of rings", world.rings.size(), rings);
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
  std::vector<MemoryFile*> certain;
  for (const auto& client : scene.model.clients) {
    for (const auto& memory : client->memories) {
      if (memory->file != nullptr && memory->file->uncertain) {
        std::copy(memory->real.begin(), memory->real.end(), memory->file->content.begin());
        certain.push_back(memory->file.get());
      }
    }
  }
  for (MemoryFile* file : certain) {
    file->uncertain = false;
  }
  for (const auto& client : scene.model.clients) {
    for (const auto& memory : client->memories) {
      if (memory->file == nullptr ||
          std::memcmp(memory->file->content.data(), memory->real.data(), memory->real.size()) == 0) {
        continue;
      }
      const auto [is, should] = std::mismatch(memory->real.begin(), memory->real.end(), memory->file->content.begin());
      scene.findings.Report("NoByteMovesWithoutRight", "byte " + std::to_string(is - memory->real.begin()) + " of m" +
                                                           std::to_string(memory->number) + " of " + Who(*client) +
                                                           " differs");
    }
  }
}

void RegionsAreWhatTheirOwnersMade(Scene& scene) {
  for (const auto& client : scene.model.clients) {
    const auto views = client->session->ViewRegions();
    uint64_t listed = 0;
    for (const auto& region : client->regions) {
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
    const auto what = [&] { return "the number of regions of " + Who(*client); };
    Compare(scene, "RegionsAreWhatTheirOwnersMade", what, views.size(), listed);
  }
}

void EndedSessionsHoldNothing(Scene& scene) {
  for (const auto& client : scene.model.clients) {
    if (!client->over) {
      continue;
    }
    core::Session& session = *client->session;
    const bool silent = session.ended() && FailedWith(session.Begin().status(), ErrorReason::SESSION_ENDING);
    bool empty = true;
    for (size_t index = 0; index < core::kResourceCount; ++index) {
      empty = empty && session.ledger().used(static_cast<Resource>(index)) == 0;
    }
    if (!silent || !empty) {
      scene.findings.Report("EndedSessionsHoldNothing",
                            Who(*client) + (silent ? " still holds something" : " still answers"));
    }
  }
}

void CheckInvariants(Scene& scene) {
  static constexpr void (*kAll[])(Scene&) = {
      EveryPostCompletesOnce,
      MappedQueuesSayWhatHappened,
      PeersAreToldOnce,
      CallbacksComeOnce,
      JobsHaveACause,
      CountsEqualHoldings,
      TenantsAreThoseOfThePolicy,
      GrantsAreThoseThatAreNotOver,
      EveryDecisionIsTold,
      NoObjectWithoutOwner,
      NoTokenOutlivesItsRegion,
      NoByteMovesWithoutRight,
      RegionsAreWhatTheirOwnersMade,
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
  scene.world.observer.decisions.clear();
  scene.model.decisions.clear();
  std::erase_if(scene.model.queue_pairs, [](const auto& pair) { return pair->closed; });
}

void NothingIsLeft(Scene& scene) {
  const char* const name = "NothingIsLeft";
  World& world = scene.world;
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    const auto what = [&] { return "the node's " + std::string(core::ResourceName(resource)); };
    Compare(scene, name, what, world.node.ledger->used(resource), 0);
  }
  Compare(scene, name, "the number of keys", world.provider.live_regions(), 0);
  Compare(scene, name, "the number of mappings", world.os.live_mappings(), 0);
  Compare(scene, name, "the number of sessions", world.registry.List().size(), 0);
  Compare(scene, name, "the number of tickets", world.tickets.size(), 0);
  Compare(scene, name, "the card's adapters", world.witness.living.adapters, 0);
  Compare(scene, name, "the card's queue pairs", world.witness.living.queue_pairs, 0);
  // Forgets the tenants of grants that are over.
  (void)world.tenants.Sweep();
  Compare(scene, name, "the number of tenants", world.tenants.Tenants().size(), 0);
  for (const auto& tenant : scene.model.seen) {
    if (!tenant.expired()) {
      scene.findings.Report(name, "a tenant that was forgotten is still there");
    }
  }
  Compare(scene, name, "the number of ended sessions", world.observer.ended, world.observer.opened);
  if (!world.registry.WaitUntilEmpty(Instant())) {
    scene.findings.Report(name, "the registry is not empty");
  }
}

}  // namespace rnicd::simulation
