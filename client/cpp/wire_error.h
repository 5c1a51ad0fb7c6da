#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace rnicd::inline client {

// The outcome of an RPC. A failure without an ErrorDetail was not reported by the daemon: a TransportFailure that keeps
// gRPC's code.
absl::Status StatusFromGrpc(const grpc::Status& status);

}  // namespace rnicd::inline client
