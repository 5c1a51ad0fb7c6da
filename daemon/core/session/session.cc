#include "daemon/core/session/session.h"

#include "base/status.h"

namespace rnicd::core {
namespace {

// Closes every object; one that was already closing completes when its last child is closed.
template <typename Objects>
void CloseAll(const Objects& objects) {
  for (const auto& [id, object] : objects) {
    (void)object->Close(nullptr);
  }
}

// Only a Session is a Lease.
Session& SessionOf(Lease& lease) { return static_cast<Session&>(lease); }

}  // namespace

SessionAdapters& SessionGuard::adapters() const { return SessionOf(*lease_).adapters_; }
SessionDomains& SessionGuard::domains() const { return SessionOf(*lease_).domains_; }
SessionMemory& SessionGuard::memory() const { return SessionOf(*lease_).memory_; }
SessionRegions& SessionGuard::regions() const { return SessionOf(*lease_).regions_; }
SessionMappings& SessionGuard::mappings() const { return SessionOf(*lease_).mappings_; }
SessionQueues& SessionGuard::queues() const { return SessionOf(*lease_).queues_; }
SessionPairs& SessionGuard::pairs() const { return SessionOf(*lease_).pairs_; }
SessionRequests& SessionGuard::requests() const { return SessionOf(*lease_).requests_; }
SessionListeners& SessionGuard::listeners() const { return SessionOf(*lease_).listeners_; }
SessionEndpoints& SessionGuard::endpoints() const { return SessionOf(*lease_).endpoints_; }
SessionConnectors& SessionGuard::connectors() const { return SessionOf(*lease_).connectors_; }
SessionRings& SessionGuard::rings() const { return SessionOf(*lease_).rings_; }
SessionWindows& SessionGuard::windows() const { return SessionOf(*lease_).windows_; }

Session::Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge,
                 std::shared_ptr<Tenant> tenant)
    : Lease(node, id, std::move(owner), std::move(label), std::move(charge), tenant),
      requests_(*this, node),
      adapters_(requests_),
      domains_(requests_, adapters_),
      memory_(requests_, {.session = std::make_shared<PinnedFiles>(shared_ledger(), false), .tenant = tenant->pins()}),
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
      listeners_(requests_, adapters_,
                 [this](Listener& listener, provider::ConnectionRequest request) {
                   return connectors_.TakeRequest(listener, std::move(request));
                 }),
      endpoints_(requests_, adapters_),
      connectors_(requests_, {.adapters = adapters_.table(), .endpoints = endpoints_.table(), .pairs = pairs_.table()}),
      rings_(requests_) {}

void Session::CancelWaiting() {
  requests_.CancelQueued();
  memory_.CancelSeals();
}

// Children before parents: rings first, so that nothing new begins; then what makes connections, and queue pairs, so
// that no transfer is left;
// windows before the regions they are bound to; and the memory when nothing uses it any more.
Reclaimed Session::Reclaim(EndCause cause) {
  rings_.CloseAll();
  for (const auto& [id, queue] : queues_.table().All()) {
    queue->EndWaits(MakeError(ErrorReason::SESSION_ENDING));
  }
  for (const auto& [id, listener] : listeners_.table().All()) {
    listener->Stop();
  }
  connectors_.CancelAll();
  CloseAll(connectors_.TakeAll());
  CloseAll(listeners_.TakeAll());
  CloseAll(endpoints_.TakeAll());
  Reclaimed reclaimed;
  reclaimed.pinned_bytes = ledger().used(Resource::kPinnedBytes);
  reclaimed.memory_bytes = ledger().used(Resource::kMemoryBytes);
  const auto regions = regions_.TakeAll();
  reclaimed.regions = regions.size();
  for (const auto& [id, region] : regions) {
    region->SetCloseCause(EndCauseName(cause));
  }
  CloseAll(pairs_.TakeAll());
  CloseAll(windows_.TakeAll());
  CloseAll(regions);
  mappings_.ReleaseAll();
  CloseAll(queues_.table().All());
  CloseAll(domains_.table().All());
  CloseAll(adapters_.table().All());
  for (const auto& [id, region] : regions) {
    reclaimed.failures += region->deregister_failed() ? 1 : 0;
  }
  for (const auto& [id, memory] : memory_.TakeAll()) {
    reclaimed.failures += memory->Release().ok() ? 0 : 1;
  }
  queues_.TakeAll();
  domains_.TakeAll();
  adapters_.TakeAll();
  return reclaimed;
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

std::vector<ListenerView> Session::ViewListeners() const {
  std::vector<ListenerView> views;
  for (const auto& [id, listener] : listeners_.table().All()) {
    if (std::optional<ListenerView> view = listener->View(); view.has_value()) {
      views.push_back(*std::move(view));
    }
  }
  return views;
}

std::vector<std::pair<std::string, ConnectionView>> Session::ViewConnections() const {
  std::vector<std::pair<std::string, ConnectionView>> views;
  for (const auto& [id, connector] : connectors_.table().All()) {
    if (std::optional<ConnectionView> view = connector->View(); view.has_value()) {
      views.emplace_back(connector->adapter().name(), *std::move(view));
    }
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
