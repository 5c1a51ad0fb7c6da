#pragma once

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/connection/shared_endpoint.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The shared endpoints of a session.
class SessionEndpoints final : public SessionObjects<SharedEndpointId, SharedEndpoint> {
 public:
  SessionEndpoints(SessionRequests& requests, const SessionAdapters& adapters)
      : SessionObjects(requests), adapters_(adapters.table()) {}

  struct Created {
    SharedEndpointId id;
    NetworkAddress local;
  };
  absl::StatusOr<Created> Create(AdapterId adapter, const LocalAddress& local);
  MaybePending<> Close(SharedEndpointId id, PendingChoice choice, const Done<>& done);

 private:
  const SessionAdapters::Table& adapters_;
};

}  // namespace rnicd::core
