#pragma once

#include "absl/status/status.h"

namespace rnicd::inline client {

// gRPC ends the process when GRPC_POLL_STRATEGY names only pollers that it does not have, as "epollsig" of older
// images. To be asked before gRPC is first used. Errors: FIELD_OUT_OF_RANGE of GRPC_POLL_STRATEGY.
absl::Status CheckGrpcPoller();

}  // namespace rnicd::inline client
