#pragma once

#include <deque>
#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// What the event stream has said of listeners and connectors, for those who wait for it.
// Threads: safe.
class ConnectionEvents {
 public:
  // Call it before Listen, so that no request is lost.
  void Watch(ListenerId id);
  // Call it before Accept and CompleteConnect.
  void Watch(ConnectorId id);
  // Returns the requests that were not taken.
  std::deque<ConnectorId> Remove(ListenerId id);
  void Remove(ConnectorId id);

  // Takes the oldest request; empty while there is none. Errors: why there will be none.
  std::optional<absl::StatusOr<ConnectorId>> TakeRequest(ListenerId id);
  // Ok when the peer has disconnected; empty while it has not. Errors: why that will not be told.
  std::optional<absl::Status> DisconnectionOf(ConnectorId id);

  // False for a listener that is not watched any more: the request is for nobody.
  bool Deliver(const v1::ConnectEvent& event);
  void Deliver(const v1::DisconnectEvent& event);
  // No event follows. `why` must not be ok. The first call wins.
  void Close(const absl::Status& why);

 private:
  Mutex mutex_;
  std::map<ListenerId, std::deque<ConnectorId>> requests_ RNICD_GUARDED_BY(mutex_);
  // Whether the peer has disconnected.
  std::map<ConnectorId, bool> connectors_ RNICD_GUARDED_BY(mutex_);
  absl::Status closed_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
