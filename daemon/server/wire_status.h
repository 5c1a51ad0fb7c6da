#pragma once

#include "absl/status/status.h"
#include "daemon/rpc/outgoing_response.h"

namespace rnicd::server {

// Code and text of the reason's row, and an RpcStatus with the ErrorDetail in the trailer.
rpc::Status ToWireStatus(const absl::Status& status);

}  // namespace rnicd::server
