#include "tests/simulation/model/model.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/units.h"
#include "daemon/core/queue/queue_pair.h"
#include "daemon/core/tenant/heap_cost.h"
#include "tests/simulation/world/world.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

constexpr size_t kRemembered = 24;

// The reason of a refusal by each resource's limit, in the order of Resource.
constexpr ErrorReason kQuotaReasons[] = {
    ErrorReason::QUOTA_SESSIONS,
    ErrorReason::QUOTA_ADAPTERS,
    ErrorReason::QUOTA_PROTECTION_DOMAINS,
    ErrorReason::QUOTA_MEMORY_OBJECTS,
    ErrorReason::QUOTA_MEMORY_BYTES,
    ErrorReason::QUOTA_REGIONS,
    ErrorReason::QUOTA_PINNED_BYTES,
    ErrorReason::QUOTA_PENDING_REQUESTS,
    ErrorReason::QUOTA_LOGICAL_MAPPINGS,
    ErrorReason::QUOTA_FAST_REGISTER_PAGES,
    ErrorReason::QUOTA_COMPLETION_QUEUES,
    ErrorReason::QUOTA_CQ_ENTRIES,
    ErrorReason::QUOTA_QUEUE_PAIRS,
    ErrorReason::QUOTA_QUEUE_ENTRIES,
    ErrorReason::QUOTA_WINDOWS,
    ErrorReason::QUOTA_POSTED_PAGES,
    ErrorReason::QUOTA_REGISTERED_BYTES,
    ErrorReason::QUOTA_LOGICAL_PAGES,
    ErrorReason::QUOTA_HEAP_BYTES,
    ErrorReason::QUOTA_RINGS,
    ErrorReason::QUOTA_LISTENERS,
    ErrorReason::QUOTA_CONNECTORS,
    ErrorReason::QUOTA_MEMORY_BYTES,
};
static_assert(std::size(kQuotaReasons) == core::kResourceCount);

uint64_t& Of(Usage& usage, Resource resource) { return usage[static_cast<size_t>(resource)]; }

// Adds a refusal if `amount` exceeds what is left of the limit. An amount of 0 always fits.
void CheckLimit(const core::Limits& limits, Resource resource, const Usage& usage, uint64_t amount, Refusals& why) {
  const auto index = static_cast<size_t>(resource);
  const uint64_t limit = limits[resource];
  why.IfAbove(limit != 0 && amount != 0 && (usage[index] > limit || amount > limit - usage[index]),
              kQuotaReasons[index], limit);
}

FilePages EachOnce(std::vector<FilePage> pages) {
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  return pages;
}

uint64_t BytesNotIn(const FilePages& held, const std::vector<FilePage>& pages) {
  FilePages fresh = EachOnce(pages);
  std::erase_if(fresh, [&held](const FilePage& page) { return std::binary_search(held.begin(), held.end(), page); });
  return fresh.size() * kNdkPageBytes;
}

// Heap bytes of everything counted, apart from lists.
uint64_t HeapCostOf(const Usage& usage) {
  uint64_t bytes = 0;
  for (size_t index = 0; index < usage.size(); ++index) {
    bytes += core::HeapCostOf(static_cast<Resource>(index), usage[index]);
  }
  return bytes;
}

void AddUp(Usage& sum, const Usage& more) {
  for (size_t index = 0; index < sum.size(); ++index) {
    sum[index] += more[index];
  }
}

template <typename T>
void Remember(std::vector<T>& list, T value) {
  if (list.size() == kRemembered) {
    list.erase(list.begin());
  }
  list.push_back(value);
}

template <typename T>
void Remove(std::vector<std::shared_ptr<T>>& list, const T& object) {
  std::erase_if(list, [&object](const std::shared_ptr<T>& each) { return each.get() == &object; });
}

template <typename T, typename Condition>
bool Any(const std::vector<std::shared_ptr<T>>& list, Condition condition) {
  return std::any_of(list.begin(), list.end(), [&](const std::shared_ptr<T>& each) { return condition(*each); });
}

// The first object whose close has begun and is not blocked.
template <typename T>
std::shared_ptr<T> FirstToFinish(const Client& client, const std::vector<std::shared_ptr<T>>& list) {
  for (const std::shared_ptr<T>& each : list) {
    if (each->closing.begun && !Model::IsHeld(client, *each)) {
      return each;
    }
  }
  return nullptr;
}

std::string_view LateName(core::RequestKind kind) {
  if (kind == core::RequestKind::kRegisterMr) {
    return "late.register";
  }
  return kind == core::RequestKind::kDeregisterMr ? "late.deregister" : "late.initialize";
}

// The expected decision text, with every allowed reason in place of the actual one.
std::string LateDecision(const Client& client, const Report& report, const Refusals& why) {
  const std::string ok = TextOf(absl::OkStatus());
  const bool by_ring = !report.ring_call.empty();
  std::string text = TextOf(core::Decision{.what = by_ring ? report.ring_call : LateName(report.kind),
                                           .caller = &client.caller,
                                           .tenant = client.tenant->name,
                                           .session = client.session->id(),
                                           .object = "mr_id=" + std::to_string(report.object_id),
                                           .note = by_ring ? "ring" : ""});
  return text.replace(text.size() - ok.size(), ok.size(), why.Text());
}

}  // namespace

Usage Model::UsageOf(const Client& client) {
  Usage usage{};
  if (client.over) {
    return usage;
  }
  const auto of = [&usage](Resource resource) -> uint64_t& { return Of(usage, resource); };
  of(Resource::kAdapters) = client.adapters.size();
  of(Resource::kProtectionDomains) = client.domains.size();
  of(Resource::kMemoryObjects) = client.memories.size();
  for (const auto& memory : client.memories) {
    of(Resource::kMemoryBytes) += memory->bytes;
  }
  of(Resource::kRegions) = client.regions.size();
  for (const auto& region : client.regions) {
    of(Resource::kFastRegisterPages) += region->fast_pages;
  }
  std::vector<FilePage> registered;
  AddRegistered(client, registered);
  of(Resource::kRegisteredBytes) = registered.size() * kNdkPageBytes;
  of(Resource::kPinnedBytes) = EachOnce(std::move(registered)).size() * kNdkPageBytes;
  for (const auto& each : client.backings) {
    const std::shared_ptr<const Backing> backing = each.lock();
    of(Resource::kPostedPages) += backing != nullptr ? backing->list : 0;
  }
  for (const auto& each : client.pages) {
    const std::shared_ptr<const MappedPages> mapped = each.lock();
    of(Resource::kLogicalPages) += mapped != nullptr ? mapped->pages.size() : 0;
  }
  of(Resource::kPendingRequests) = client.slow_requests;
  of(Resource::kLogicalMappings) = client.mappings.size();
  of(Resource::kCompletionQueues) = client.completion_queues.size();
  for (const auto& queue : client.completion_queues) {
    of(Resource::kCqEntries) += queue->depth;
  }
  of(Resource::kQueuePairs) = client.queue_pairs.size();
  for (const auto& pair : client.queue_pairs) {
    of(Resource::kQueueEntries) += uint64_t{pair->limits.receive_depth} + pair->limits.initiator_depth;
  }
  of(Resource::kWindows) = client.windows.size();
  for (const DueCompletion& due : client.completions) {
    if (due.charge.has_value()) {
      ++of(*due.charge);
    }
  }
  of(Resource::kRings) = client.ring != nullptr ? 1 : 0;
  of(Resource::kHeapBytes) = ListsOf(client) + HeapCostOf(usage);
  return usage;
}

uint64_t Model::ListsOf(const Client& client) {
  uint64_t runs = 0;
  for (const auto& region : client.regions) {
    runs += region->runs;
  }
  for (const auto& each : client.pages) {
    const std::shared_ptr<const MappedPages> mapped = each.lock();
    runs += mapped != nullptr ? mapped->runs : 0;
  }
  uint64_t pieces = 0;
  for (const auto& each : client.backings) {
    const std::shared_ptr<const Backing> backing = each.lock();
    pieces += backing != nullptr ? backing->pieces : 0;
  }
  uint64_t bytes = runs * core::kHeapOfRun + pieces * core::kHeapOfPostedPiece;
  bytes += client.ring != nullptr ? client.ring->file_bytes() : 0;
  for (const auto& queue : client.completion_queues) {
    bytes += queue->mapped != nullptr ? MappedUser::HeapOf(queue->mapped_depth_max) : 0;
  }
  for (const auto& pair : client.queue_pairs) {
    bytes += core::QueuePair::HeapOfLists(pair->limits);
  }
  return bytes;
}

void Model::AddRegistered(const Client& client, std::vector<FilePage>& registered) {
  for (const auto& region : client.regions) {
    registered.insert(registered.end(), region->pages.begin(), region->pages.end());
  }
  for (const auto& each : client.pages) {
    if (const std::shared_ptr<const MappedPages> mapped = each.lock(); mapped != nullptr) {
      for (const MappedPages::Page& page : mapped->pages) {
        registered.push_back(page.in_file());
      }
    }
  }
}

FilePages Model::PinnedBy(const Client& client) {
  std::vector<FilePage> registered;
  AddRegistered(client, registered);
  return EachOnce(std::move(registered));
}

FilePages Model::PinnedBy(const Tenant& tenant) const {
  std::vector<FilePage> registered;
  for (const auto& client : clients) {
    if (client->tenant.get() == &tenant && !client->over) {
      AddRegistered(*client, registered);
    }
  }
  return EachOnce(std::move(registered));
}

Usage Model::UsageOf(const Tenant& tenant) const {
  Usage usage{};
  for (const auto& client : clients) {
    if (client->tenant.get() == &tenant) {
      AddUp(usage, UsageOf(*client));
      Of(usage, Resource::kSessions) += client->over ? 0 : 1;
      Of(usage, Resource::kHeapBytes) += client->over ? 0 : core::HeapCostOf(Resource::kSessions, 1);
    }
  }
  Of(usage, Resource::kPinnedBytes) = PinnedBy(tenant).size() * kNdkPageBytes;
  return usage;
}

Usage Model::UsageOfNode() const {
  Usage usage{};
  std::set<const Tenant*> counted;
  for (const auto& client : clients) {
    if (counted.insert(client->tenant.get()).second) {
      AddUp(usage, UsageOf(*client->tenant));
    }
  }
  return usage;
}

void Model::CheckQuota(const Client& client, Resource resource, uint64_t amount, Refusals& why) const {
  const Usage of_client = UsageOf(client);
  const Usage of_tenant = UsageOf(*client.tenant);
  const Usage of_node = UsageOfNode();
  const auto check = [&](Resource each, uint64_t more) {
    CheckLimit(client.limits, each, of_client, more, why);
    CheckLimit(client.tenant->limits.tenant, each, of_tenant, more, why);
    CheckLimit(limits.node, each, of_node, more, why);
  };
  check(resource, amount);
  if (resource != Resource::kHeapBytes) {
    check(Resource::kHeapBytes, core::HeapCostOf(resource, amount));
  }
}

void Model::CheckHeap(const Client& client, const Amounts& amounts, uint64_t lists, Refusals& why) const {
  uint64_t bytes = lists;
  for (const auto& [resource, amount] : amounts) {
    bytes += core::HeapCostOf(resource, amount);
  }
  CheckQuota(client, Resource::kHeapBytes, bytes, why);
}

void Model::CheckPins(const Client& client, const std::vector<FilePage>& pages, Refusals& why) const {
  CheckQuota(client, Resource::kRegisteredBytes, pages.size() * kNdkPageBytes, why);
  const uint64_t to_client = BytesNotIn(PinnedBy(client), pages);
  const uint64_t to_tenant = BytesNotIn(PinnedBy(*client.tenant), pages);
  CheckLimit(client.limits, Resource::kPinnedBytes, UsageOf(client), to_client, why);
  CheckLimit(client.tenant->limits.tenant, Resource::kPinnedBytes, UsageOf(*client.tenant), to_tenant, why);
  CheckLimit(limits.node, Resource::kPinnedBytes, UsageOfNode(), to_tenant, why);
}

void Model::CheckSession(const Tenant& tenant, Refusals& why) const {
  const uint64_t heap = core::HeapCostOf(Resource::kSessions, 1);
  const Usage of_tenant = UsageOf(tenant);
  const Usage of_node = UsageOfNode();
  CheckLimit(tenant.limits.tenant, Resource::kSessions, of_tenant, 1, why);
  CheckLimit(tenant.limits.tenant, Resource::kHeapBytes, of_tenant, heap, why);
  CheckLimit(limits.node, Resource::kSessions, of_node, 1, why);
  CheckLimit(limits.node, Resource::kHeapBytes, of_node, heap, why);
}

void Model::PostToWorker(Client& client, std::string what, std::function<void()> apply) {
  ++client.jobs;
  worker_tasks.push_back({.what = std::move(what), .client = &client, .apply = std::move(apply)});
}

void Model::Complete(Client& client, const Report& report, Refusals why,
                     const std::optional<Registration>& registration) {
  if (!report.ring_call.empty()) {
    decisions.push_back(LateDecision(client, report, why));
  }
  if (!report.to_events) {
    mailbox.Expect(report.callback, std::move(why));
    return;
  }
  if (!why.none()) {
    decisions.push_back(LateDecision(client, report, why));
  }
  client.completions.push_back({.kind = report.kind,
                                .request_context = report.request_context,
                                .object_id = report.object_id,
                                .why = std::move(why),
                                .registration = registration,
                                .charge = report.charge});
}

void Model::Deregister(Client& client, Region& region) {
  Nic& nic = *region.domain->adapter->nic;
  BuryToken(client, region.target->local.value);
  BuryToken(client, region.target->remote.value);
  nic.Erase(*region.target);
  --nic.keys;
  region.target = nullptr;
  region.uses.clear();
  region.pages.clear();
  region.runs = 0;
}

void Model::RemoveQueuePair(Client& client, QueuePair& pair) {
  Bury(client, pair.id.value);
  pair.closed = true;
  pair.disconnect_waits = false;
  Remove(client.queue_pairs, pair);
}

void Model::RemoveWindow(Client& client, Window& window) {
  Bury(client, window.id.value);
  BuryToken(client, window.key->issued.value);
  window.key->Retire();
  Remove(client.windows, window);
}

void Model::RevokeTicket(const Client& client, MemoryObjectId memory) {
  std::erase_if(tickets, [&](const Ticket& ticket) { return ticket.client == &client && ticket.memory == memory; });
}

void Model::FinishClose(Client& client, const Closing& closing, uint64_t id) {
  Bury(client, id);
  if (closing.report.has_value()) {
    Complete(client, *closing.report, Refusals());
  }
}

// Returns 1 if the card failed to deregister the region. The card does not keep it either way.
uint64_t Model::FinishRegion(Client& client, Region& region) {
  Refusals why;
  if (region.target != nullptr) {
    (void)faults.Strikes(Fault::kDeregister, why);
    Deregister(client, region);
  }
  if (region.key != nullptr) {
    BuryToken(client, region.key->local.value);
    BuryToken(client, region.key->issued.value);
    region.key->Retire();
    region.key = nullptr;
  }
  FinishClose(client, region.closing, region.id.value);
  Remove(client.regions, region);
  return why.none() ? 0 : 1;
}

uint64_t Model::Settle(Client& client) {
  uint64_t failures = 0;
  while (true) {
    if (const auto region = FirstToFinish(client, client.regions); region != nullptr) {
      failures += FinishRegion(client, *region);
    } else if (const auto domain = FirstToFinish(client, client.domains); domain != nullptr) {
      FinishClose(client, domain->closing, domain->id.value);
      Remove(client.domains, *domain);
    } else if (const auto queue = FirstToFinish(client, client.completion_queues); queue != nullptr) {
      FinishClose(client, queue->closing, queue->id.value);
      Remove(client.completion_queues, *queue);
    } else if (const auto adapter = FirstToFinish(client, client.adapters); adapter != nullptr) {
      FinishClose(client, adapter->closing, adapter->id.value);
      Remove(client.adapters, *adapter);
    } else {
      return failures;
    }
  }
}

bool Model::IsHeld(const Client& client, const Adapter& adapter) {
  const auto is_on = [&adapter](const auto& object) { return object.adapter.get() == &adapter; };
  return Any(client.domains, is_on) || Any(client.completion_queues, is_on) || Any(client.mappings, is_on);
}

bool Model::IsHeld(const Client& client, const Domain& domain) {
  const auto is_in = [&domain](const auto& object) { return object.domain.get() == &domain; };
  return Any(client.regions, is_in) || Any(client.queue_pairs, is_in) || Any(client.windows, is_in);
}

bool Model::IsHeld(const Client& client, const CompletionQueue& queue) {
  return Any(client.queue_pairs, [&queue](const QueuePair& pair) {
    return pair.receive_queue.get() == &queue || pair.initiator_queue.get() == &queue;
  });
}

bool Model::IsHeld(const Client& /*client*/, const Region& region) { return region.requests > 0; }

void Model::Bury(Client& client, uint64_t id) { Remember(client.dead_ids, id); }

void Model::BuryToken(Client& client, uint32_t token) { Remember(client.dead_tokens, token); }

}  // namespace rnicd::simulation
