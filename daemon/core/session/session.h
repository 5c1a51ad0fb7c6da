#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_reason.h"
#include "base/strong_id.h"
#include "daemon/core/connection/session_connectors.h"
#include "daemon/core/connection/session_endpoints.h"
#include "daemon/core/connection/session_listeners.h"
#include "daemon/core/memory/session_memory.h"
#include "daemon/core/queue/session_pairs.h"
#include "daemon/core/queue/session_queues.h"
#include "daemon/core/region/holdings.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/region/session_domains.h"
#include "daemon/core/region/session_mappings.h"
#include "daemon/core/region/session_regions.h"
#include "daemon/core/region/session_window.h"
#include "daemon/core/request/lease.h"
#include "daemon/core/request/session_requests.h"
#include "daemon/core/ring/session_rings.h"

namespace rnicd::core {

// A lease with what its process owns: a class for each kind of object, which only a SessionGuard leads to.
// Threads: safe.
class Session final : public Lease {
 public:
  // `charge` counts the session itself for its tenant.
  Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge, std::shared_ptr<Tenant> tenant);

  std::vector<std::pair<MemoryRegionId, RegionView>> ViewRegions() const;
  void AddTo(Holdings& holdings) const;
  std::vector<ListenerView> ViewListeners() const;
  // Connectors that are not idle, each with the name of its adapter.
  std::vector<std::pair<std::string, ConnectionView>> ViewConnections() const;

  // Tells the owner of cards that were removed, and lets go of them: of what the owner does not close itself after a
  // grace. Behind what its tenant has queued for workers. On a reaper, later.
  void LeaveRemovedCards();

 private:
  friend class SessionGuard;

  void CancelWaiting() override;
  Reclaimed Reclaim(EndCause cause) override;
  // What is closed: all of an adapter, or of the session if that is null; and how those who wait, and the counts of
  // revoked tokens, hear of it.
  struct Closing {
    const Adapter* adapter = nullptr;
    ErrorReason reason = ErrorReason::SESSION_ENDING;
    std::string_view cause;
  };
  // Returns the regions, and those that the card failed to deregister. Memory stays.
  Reclaimed CloseObjects(const Closing& closing);

  // session_removal.cc
  void AnnounceRemovals();
  void Disconnect(const Adapter& adapter);
  void CloseAfterGrace(const std::shared_ptr<Adapter>& adapter);
  // Calls `step` on a reaper, unless the session ends before.
  void Later(std::function<void(Session&)> step);

  SessionRequests requests_;
  SessionAdapters adapters_;
  SessionDomains domains_;
  SessionMemory memory_;
  SessionRegions regions_;
  SessionMappings mappings_;
  SessionQueues queues_;
  SessionWindows windows_;
  SessionPairs pairs_;
  SessionListeners listeners_;
  SessionEndpoints endpoints_;
  SessionConnectors connectors_;
  SessionRings rings_;
};

}  // namespace rnicd::core
