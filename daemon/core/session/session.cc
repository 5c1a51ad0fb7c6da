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

const Adapter* AdapterOf(const Adapter& adapter) { return &adapter; }
const Adapter* AdapterOf(const Listener& listener) { return listener.adapter().get(); }
template <typename T>
const Adapter* AdapterOf(const T& object) {
  if constexpr (requires { object.domain(); }) {
    return &object.domain()->adapter();
  } else {
    return &object.adapter();
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
      adapters_(requests_, [this] { LeaveRemovedCards(); }),
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

// Rings first, so that nothing new begins; the memory when nothing uses it any more.
Reclaimed Session::Reclaim(EndCause cause) {
  rings_.CloseAll();
  const uint64_t pinned_bytes = ledger().used(Resource::kPinnedBytes);
  const uint64_t memory_bytes = ledger().used(Resource::kMemoryBytes);
  Reclaimed reclaimed = CloseObjects({.reason = ErrorReason::SESSION_ENDING, .cause = EndCauseName(cause)});
  reclaimed.pinned_bytes = pinned_bytes;
  reclaimed.memory_bytes = memory_bytes;
  for (const auto& [id, memory] : memory_.TakeAll()) {
    reclaimed.failures += memory->Release().ok() ? 0 : 1;
  }
  return reclaimed;
}

// Parents begin to close first, so that they take no more children, and are closed when their last child is. Children:
// what makes connections, then queue pairs, so that no transfer is left; windows before the regions they are bound to.
Reclaimed Session::CloseObjects(const Closing& closing) {
  const auto wanted = [only = closing.adapter](const auto& object) {
    return only == nullptr || AdapterOf(object) == only;
  };
  const auto queues = queues_.TakeIf(wanted);
  for (const auto& [id, queue] : queues) {
    queue->EndWaits(MakeError(closing.reason));
  }
  CloseAll(adapters_.TakeIf(wanted));
  CloseAll(domains_.TakeIf(wanted));
  CloseAll(queues);
  const auto listeners = listeners_.TakeIf(wanted);
  for (const auto& [id, listener] : listeners) {
    listener->Stop();
  }
  const auto connectors = connectors_.TakeIf(wanted);
  for (const auto& [id, connector] : connectors) {
    connector->Cancel(MakeError(closing.reason));
  }
  CloseAll(connectors);
  CloseAll(listeners);
  CloseAll(endpoints_.TakeIf(wanted));
  CloseAll(pairs_.TakeIf(wanted));
  CloseAll(windows_.TakeIf(wanted));
  const auto regions = regions_.TakeIf(wanted);
  for (const auto& [id, region] : regions) {
    region->SetCloseCause(closing.cause);
  }
  CloseAll(regions);
  mappings_.ReleaseIf(wanted);
  Reclaimed reclaimed{.regions = regions.size()};
  for (const auto& [id, region] : regions) {
    reclaimed.failures += region->deregister_failed() ? 1 : 0;
  }
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
