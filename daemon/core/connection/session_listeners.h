#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/connection/listener.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// How a listener can be reached.
struct ListeningAt {
  NetworkAddress local;
  // Empty without a name.
  std::string full_name;
};

// The full name of a listener of this session: "namespace/name", or "tenant/name" outside of known pods. A name that is
// full already is returned unchanged.
std::string FullListenerName(const Lease& lease, const std::string& name);

// The listeners of a session.
class SessionListeners final : public SessionObjects<ListenerId, Listener> {
 public:
  SessionListeners(SessionRequests& requests, const SessionAdapters& adapters, Listener::Take take)
      : SessionObjects(requests), adapters_(adapters.table()), take_(std::move(take)) {}

  absl::StatusOr<ListenerId> Create(AdapterId adapter, uint64_t context);
  absl::StatusOr<ListeningAt> Listen(ListenerId id, const LocalAddress& local, const std::string& name);
  absl::Status SetPaused(ListenerId id, bool paused);
  absl::StatusOr<NetworkAddress> LocalAddressOf(ListenerId id) const;
  MaybePending<> Close(ListenerId id, PendingChoice choice, const Done<>& done);

 private:
  const SessionAdapters::Table& adapters_;
  const Listener::Take take_;
};

}  // namespace rnicd::core
