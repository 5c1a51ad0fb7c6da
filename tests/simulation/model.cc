#include "tests/simulation/model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

constexpr size_t kRemembered = 24;

// The reason of a refusal for want of a resource, in the order of Resource.
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
};
static_assert(std::size(kQuotaReasons) == core::kResourceCount);

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

// The first object whose close has begun and is not held up.
template <typename T>
std::shared_ptr<T> FirstToFinish(const Tenant& tenant, const std::vector<std::shared_ptr<T>>& list) {
  for (const std::shared_ptr<T>& each : list) {
    if (each->closing.begun && !Model::IsHeld(tenant, *each)) {
      return each;
    }
  }
  return nullptr;
}

}  // namespace

Usage Model::UsageOf(const Tenant& tenant) const {
  Usage usage{};
  if (tenant.over) {
    return usage;
  }
  const auto of = [&usage](Resource resource) -> uint64_t& { return usage[static_cast<size_t>(resource)]; };
  of(Resource::kAdapters) = tenant.adapters.size();
  of(Resource::kProtectionDomains) = tenant.domains.size();
  of(Resource::kMemoryObjects) = tenant.memories.size();
  for (const auto& memory : tenant.memories) {
    of(Resource::kMemoryBytes) += memory->bytes;
  }
  of(Resource::kRegions) = tenant.regions.size();
  for (const auto& region : tenant.regions) {
    of(Resource::kPinnedBytes) += region->pinned_pages * kNdkPageBytes;
    of(Resource::kFastRegisterPages) += region->fast_pages;
  }
  for (const auto& each : tenant.pages) {
    const std::shared_ptr<const MappedPages> pages = each.lock();
    of(Resource::kPinnedBytes) += pages != nullptr ? pages->pages.size() * kNdkPageBytes : 0;
  }
  for (const auto& each : tenant.backings) {
    const std::shared_ptr<const Backing> backing = each.lock();
    of(Resource::kPostedPages) += backing != nullptr ? backing->list : 0;
  }
  of(Resource::kPendingRequests) = tenant.slow_requests;
  of(Resource::kLogicalMappings) = tenant.mappings.size();
  of(Resource::kCompletionQueues) = tenant.completion_queues.size();
  for (const auto& queue : tenant.completion_queues) {
    of(Resource::kCqEntries) += queue->depth;
  }
  of(Resource::kQueuePairs) = tenant.queue_pairs.size();
  for (const auto& pair : tenant.queue_pairs) {
    of(Resource::kQueueEntries) += uint64_t{pair->limits.receive_depth} + pair->limits.initiator_depth;
  }
  of(Resource::kWindows) = tenant.windows.size();
  for (const DueCompletion& due : tenant.completions) {
    if (due.charge.has_value()) {
      ++of(*due.charge);
    }
  }
  return usage;
}

Usage Model::UsageOfUid(uid_t uid) const {
  Usage usage{};
  for (const auto& tenant : tenants) {
    if (tenant->caller.uid == uid) {
      AddUp(usage, UsageOf(*tenant));
      usage[static_cast<size_t>(Resource::kSessions)] += tenant->over ? 0 : 1;
    }
  }
  return usage;
}

Usage Model::UsageOfNode() const {
  Usage usage{};
  for (const auto& tenant : tenants) {
    AddUp(usage, UsageOf(*tenant));
    usage[static_cast<size_t>(Resource::kSessions)] += tenant->over ? 0 : 1;
  }
  return usage;
}

void Model::JudgeQuota(const Tenant& tenant, Resource resource, uint64_t amount, Refusals& why) const {
  const auto index = static_cast<size_t>(resource);
  const auto above = [&](const core::Limits& most, uint64_t used) {
    const uint64_t limit = most[resource];
    return limit != 0 && (used > limit || amount > limit - used);
  };
  why.If(above(limits.session, UsageOf(tenant)[index]) || above(limits.uid, UsageOfUid(tenant.caller.uid)[index]) ||
             above(limits.node, UsageOfNode()[index]),
         kQuotaReasons[index]);
}

void Model::PostToWorker(Tenant& tenant, std::string what, std::function<void()> apply) {
  ++tenant.jobs;
  worker_tasks.push_back({.what = std::move(what), .tenant = &tenant, .apply = std::move(apply)});
}

void Model::Complete(Tenant& tenant, const Report& report, Refusals why,
                     const std::optional<core::Registration>& registration) {
  if (!report.to_events) {
    mailbox.Expect(report.callback, std::move(why));
    return;
  }
  tenant.completions.push_back({.kind = report.kind,
                                .request_context = report.request_context,
                                .object_id = report.object_id,
                                .why = std::move(why),
                                .registration = registration,
                                .charge = report.charge});
}

void Model::Deregister(Tenant& tenant, Region& region) {
  Nic& nic = *region.domain->adapter->nic;
  BuryToken(tenant, region.target->local.value);
  BuryToken(tenant, region.target->remote.value);
  nic.Erase(*region.target);
  --nic.keys;
  region.target = nullptr;
  region.uses.clear();
  region.pinned_pages = 0;
}

void Model::RemoveQueuePair(Tenant& tenant, QueuePair& pair) {
  Bury(tenant, pair.id.value);
  pair.closed = true;
  pair.disconnect_waits = false;
  Remove(tenant.queue_pairs, pair);
}

void Model::RemoveWindow(Tenant& tenant, Window& window) {
  Bury(tenant, window.id.value);
  BuryToken(tenant, window.key->issued.value);
  window.key->Retire();
  Remove(tenant.windows, window);
}

void Model::FinishClose(Tenant& tenant, const Closing& closing, uint64_t id) {
  Bury(tenant, id);
  if (closing.report.has_value()) {
    Complete(tenant, *closing.report, Refusals());
  }
}

// Answers 1 when the card did not deregister it. It does not keep the region either way.
uint64_t Model::FinishRegion(Tenant& tenant, Region& region) {
  Refusals why;
  if (region.target != nullptr) {
    (void)faults.Strikes(Fault::kDeregister, why);
    Deregister(tenant, region);
  }
  if (region.key != nullptr) {
    BuryToken(tenant, region.key->local.value);
    BuryToken(tenant, region.key->issued.value);
    region.key->Retire();
    region.key = nullptr;
  }
  FinishClose(tenant, region.closing, region.id.value);
  Remove(tenant.regions, region);
  return why.none() ? 0 : 1;
}

uint64_t Model::Settle(Tenant& tenant) {
  uint64_t failures = 0;
  while (true) {
    if (const auto region = FirstToFinish(tenant, tenant.regions); region != nullptr) {
      failures += FinishRegion(tenant, *region);
    } else if (const auto domain = FirstToFinish(tenant, tenant.domains); domain != nullptr) {
      FinishClose(tenant, domain->closing, domain->id.value);
      Remove(tenant.domains, *domain);
    } else if (const auto queue = FirstToFinish(tenant, tenant.completion_queues); queue != nullptr) {
      FinishClose(tenant, queue->closing, queue->id.value);
      Remove(tenant.completion_queues, *queue);
    } else if (const auto adapter = FirstToFinish(tenant, tenant.adapters); adapter != nullptr) {
      FinishClose(tenant, adapter->closing, adapter->id.value);
      Remove(tenant.adapters, *adapter);
    } else {
      return failures;
    }
  }
}

bool Model::IsHeld(const Tenant& tenant, const Adapter& adapter) {
  const auto is_on = [&adapter](const auto& object) { return object.adapter.get() == &adapter; };
  return Any(tenant.domains, is_on) || Any(tenant.completion_queues, is_on) || Any(tenant.mappings, is_on);
}

bool Model::IsHeld(const Tenant& tenant, const Domain& domain) {
  const auto is_in = [&domain](const auto& object) { return object.domain.get() == &domain; };
  return Any(tenant.regions, is_in) || Any(tenant.queue_pairs, is_in) || Any(tenant.windows, is_in);
}

bool Model::IsHeld(const Tenant& tenant, const CompletionQueue& queue) {
  return Any(tenant.queue_pairs, [&queue](const QueuePair& pair) {
    return pair.receive_queue.get() == &queue || pair.initiator_queue.get() == &queue;
  });
}

bool Model::IsHeld(const Tenant& /*tenant*/, const Region& region) { return region.requests > 0; }

void Model::Bury(Tenant& tenant, uint64_t id) { Remember(tenant.dead_ids, id); }

void Model::BuryToken(Tenant& tenant, uint32_t token) { Remember(tenant.dead_tokens, token); }

}  // namespace rnicd::simulation
