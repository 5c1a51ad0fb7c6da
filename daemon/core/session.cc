#include "daemon/core/session.h"

#include "base/status.h"

namespace rnicd::core {
namespace {

// The tenant's session limits, with the node's where the tenant sets none.
Limits SessionLimits(const Limits& of_tenant, const Limits& of_node) {
  Limits limits = of_node;
  for (size_t index = 0; index < kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (of_tenant[resource] != 0) {
      limits[resource] = of_tenant[resource];
    }
  }
  return limits;
}

absl::Status RateError(const RateLimiter& rate) {
  return MakeError(ErrorInfo{
      .reason = ErrorReason::RATE_LIMITED, .limit = rate.per_second(), .used = rate.per_second(), .requested = 1});
}

}  // namespace

Session::Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge,
                 std::shared_ptr<Tenant> tenant)
    : node_(node),
      id_(id),
      owner_(std::move(owner)),
      label_(std::move(label)),
      opened_(node.clock.Now()),
      tenant_(std::move(tenant)),
      charge_(std::move(charge)),
      ledger_(
          std::make_shared<Ledger>(SessionLimits(tenant_->limits().session, node.limits.session), tenant_->ledger())),
      rate_(node.clock, tenant_->limits().session_rate),
      requests_(*this, node, *tenant_, ledger_, rate_),
      adapters_(requests_),
      domains_(requests_, adapters_),
      memory_(requests_, {.session = std::make_shared<PinnedFiles>(ledger_, false), .tenant = tenant_->pins()}),
      regions_(requests_, domains_, memory_),
      mappings_(requests_, adapters_, memory_),
      queues_(requests_, adapters_,
              [this](const std::shared_ptr<CompletionQueue>& dead) { pairs_.EndQueuePairsOf(dead); }),
      windows_(requests_, domains_),
      pairs_(requests_, {.domains = domains_.table(),
                         .queues = queues_.table(),
                         .regions = regions_.table(),
                         .windows = windows_.table(),
                         .addresses = mappings_.addresses()}),
      rings_(requests_) {}

absl::Status Session::AdmitCall(std::chrono::nanoseconds* wait) {
  if (const auto own = rate_.Take(); own.has_value()) {
    *wait = *own;
    return RateError(rate_);
  }
  if (const auto shared = tenant_->rate().Take(); shared.has_value()) {
    rate_.Undo();
    *wait = *shared;
    return RateError(tenant_->rate());
  }
  return absl::OkStatus();
}

std::vector<std::pair<MemoryRegionId, RegionView>> Session::ViewRegions() const {
  const auto regions = regions_.table().All();
  std::vector<std::pair<MemoryRegionId, RegionView>> views;
  views.reserve(regions.size());
  for (const auto& [id, region] : regions) {
    views.emplace_back(id, region->View());
  }
  return views;
}

void Session::AddTo(Holdings& holdings) const {
  regions_.table().ForEach([&](const MemoryRegion& region) { region.AddTo(holdings); });
  mappings_.table().ForEach([&](const LogicalMapping& mapping) {
    const MappedPages& mapped = *mapping.pages();
    holdings.AddPages(mapping.adapter().name(), PageUse::kMapping, mapped.page_bytes, mapped.pages.size());
  });
  // Not under the table's lock: reading the state may query the card.
  for (const auto& [id, pair] : pairs_.table().All()) {
    if (const absl::StatusOr<Closable::Hold> hold = pair->Acquire(); hold.ok()) {
      holdings.AddQueuePair(pair->domain()->adapter().name(), pair->state());
    }
  }
}

}  // namespace rnicd::core
