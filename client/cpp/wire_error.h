#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::inline client {

// The failure as the daemon created it, so that ErrorInfoOf and NtStatusOf return the same in both processes.
// A reason unknown to this library keeps its number, the given code and the daemon's text.
absl::Status StatusFromDetail(const v1::ErrorDetail& detail, absl::StatusCode code_if_unknown);

// The outcome of an RPC. A failure without an ErrorDetail was not reported by the daemon: a TransportFailure that keeps
// gRPC's code.
absl::Status StatusFromGrpc(const grpc::Status& status);

}  // namespace rnicd::inline client
