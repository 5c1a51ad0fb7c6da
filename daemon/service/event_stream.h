#pragma once

#include <memory>

#include "daemon/gate/call.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::service {

// Writes the events of the call's session to its client, one at a time, in order, until the session's last one. A
// session has one such stream.
void WatchEvents(const std::shared_ptr<gate::Call>& call, const v1::WatchEventsRequest& request);

}  // namespace rnicd::service
