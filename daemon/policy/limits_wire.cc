#include "daemon/policy/limits_wire.h"

#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/units.h"

namespace rnicd::policy {
namespace {

using core::Resource;
using v1::ResourceLimits;

struct Row {
  Resource resource;
  uint64_t (ResourceLimits::*get)() const;
  void (ResourceLimits::*set)(uint64_t);
  // True for a limit in bytes, which must be whole pages.
  bool bytes = false;
};

constexpr Row kRows[] = {
    {Resource::kSessions, &ResourceLimits::sessions, &ResourceLimits::set_sessions},
    {Resource::kAdapters, &ResourceLimits::adapters, &ResourceLimits::set_adapters},
    {Resource::kProtectionDomains, &ResourceLimits::protection_domains, &ResourceLimits::set_protection_domains},
    {Resource::kMemoryObjects, &ResourceLimits::memory_objects, &ResourceLimits::set_memory_objects},
    {Resource::kMemoryBytes, &ResourceLimits::memory_bytes, &ResourceLimits::set_memory_bytes, true},
    {Resource::kRegions, &ResourceLimits::regions, &ResourceLimits::set_regions},
    {Resource::kPinnedBytes, &ResourceLimits::pinned_bytes, &ResourceLimits::set_pinned_bytes, true},
    {Resource::kRegisteredBytes, &ResourceLimits::registered_bytes, &ResourceLimits::set_registered_bytes, true},
    {Resource::kPendingRequests, &ResourceLimits::pending_requests, &ResourceLimits::set_pending_requests},
    {Resource::kLogicalMappings, &ResourceLimits::logical_mappings, &ResourceLimits::set_logical_mappings},
    {Resource::kFastRegisterPages, &ResourceLimits::fast_register_pages, &ResourceLimits::set_fast_register_pages},
    {Resource::kCompletionQueues, &ResourceLimits::completion_queues, &ResourceLimits::set_completion_queues},
    {Resource::kCqEntries, &ResourceLimits::cq_entries, &ResourceLimits::set_cq_entries},
    {Resource::kQueuePairs, &ResourceLimits::queue_pairs, &ResourceLimits::set_queue_pairs},
    {Resource::kQueueEntries, &ResourceLimits::queue_entries, &ResourceLimits::set_queue_entries},
    {Resource::kWindows, &ResourceLimits::windows, &ResourceLimits::set_windows},
    {Resource::kPostedPages, &ResourceLimits::posted_pages, &ResourceLimits::set_posted_pages},
    {Resource::kLogicalPages, &ResourceLimits::logical_pages, &ResourceLimits::set_logical_pages},
    {Resource::kRings, &ResourceLimits::rings, &ResourceLimits::set_rings},
    {Resource::kListeners, &ResourceLimits::listeners, &ResourceLimits::set_listeners},
    {Resource::kConnectors, &ResourceLimits::connectors, &ResourceLimits::set_connectors},
    {Resource::kHeapBytes, &ResourceLimits::heap_bytes, &ResourceLimits::set_heap_bytes, true},
};
static_assert(std::size(kRows) == core::kLimitedResourceCount, "a resource without a field in v1::ResourceLimits");

constexpr std::string_view kRateField = "requests_per_second";
constexpr uint64_t kRateMax = 1000000000;

std::string NameOf(const Row& row) { return std::string(core::ResourceName(row.resource)); }

absl::Status FirstOf(const std::vector<LimitsProblem>& problems, std::string_view field) {
  if (problems.empty()) {
    return absl::OkStatus();
  }
  const std::string prefix = field.empty() ? "" : std::string(field) + ".";
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, prefix + problems.front().field);
}

// False when the owner has no such limit, or the session none of its own.
bool IsAbove(uint64_t session, uint64_t owner) { return owner != 0 && session > owner; }

std::string AboveText(uint64_t session, uint64_t owner) {
  return absl::StrCat("must not be above the tenant's ", owner, ", is ", session);
}

}  // namespace

core::Limits FromWire(const ResourceLimits& limits) {
  core::Limits result;
  for (const Row& row : kRows) {
    result[row.resource] = (limits.*row.get)();
  }
  return result;
}

core::Rate RateFromWire(const ResourceLimits& limits) { return {.per_second = limits.requests_per_second()}; }

ResourceLimits ToWire(const core::Limits& limits, const core::Rate& rate) {
  ResourceLimits wire;
  for (const Row& row : kRows) {
    (wire.*row.set)(limits[row.resource]);
  }
  wire.set_requests_per_second(rate.per_second);
  return wire;
}

std::vector<LimitsProblem> ProblemsOf(const ResourceLimits& limits) {
  std::vector<LimitsProblem> problems;
  for (const Row& row : kRows) {
    const uint64_t value = (limits.*row.get)();
    if (value > INT64_MAX) {
      problems.push_back({NameOf(row), absl::StrCat("must be at most ", INT64_MAX, ", is ", value)});
    } else if (row.bytes && value % kNdkPageBytes != 0) {
      problems.push_back({NameOf(row), absl::StrCat("must be a multiple of ", kNdkPageBytes, ", is ", value)});
    }
  }
  if (limits.requests_per_second() > kRateMax) {
    problems.push_back(
        {std::string(kRateField), absl::StrCat("must be at most ", kRateMax, ", is ", limits.requests_per_second())});
  }
  return problems;
}

std::vector<LimitsProblem> ProblemsOfSession(const ResourceLimits& session, const ResourceLimits& owner) {
  std::vector<LimitsProblem> problems;
  for (const Row& row : kRows) {
    const uint64_t value = (session.*row.get)();
    const uint64_t above = (owner.*row.get)();
    if (row.resource == Resource::kSessions) {
      if (value != 0) {
        problems.push_back({NameOf(row), "is no limit of a session: it belongs to the tenant's limits"});
      }
    } else if (IsAbove(value, above)) {
      problems.push_back({NameOf(row), AboveText(value, above)});
    }
  }
  if (IsAbove(session.requests_per_second(), owner.requests_per_second())) {
    problems.push_back(
        {std::string(kRateField), AboveText(session.requests_per_second(), owner.requests_per_second())});
  }
  return problems;
}

absl::Status CheckLimits(const ResourceLimits& limits, std::string_view field) {
  return FirstOf(ProblemsOf(limits), field);
}

absl::Status CheckSessionLimits(const ResourceLimits& session, const ResourceLimits& owner, std::string_view field) {
  RNICD_RETURN_IF_ERROR(CheckLimits(session, field));
  return FirstOf(ProblemsOfSession(session, owner), field);
}

}  // namespace rnicd::policy
