#pragma once

#include <chrono>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"

namespace rnicd::inline client {

// For a channel to the daemon or another process of this machine: it shares its connection with no other channel of
// this process, because a session belongs to a connection.
grpc::ChannelArguments LocalChannelArguments();

// The outcome of an RPC. A failure without an ErrorDetail was not reported by the daemon: a TransportFailure that keeps
// gRPC's code.
absl::Status StatusFromGrpc(const grpc::Status& status);

// One unary call, which fails at once when nothing listens.
// Errors: as StatusFromGrpc.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallUnary(Stub& stub,
                                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                   const std::type_identity_t<Request>& request, std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Response response;
  absl::Status status = StatusFromGrpc((stub.*method)(&context, request, &response));
  if (!status.ok()) {
    return status;
  }
  return response;
}

// gRPC ends the process when GRPC_POLL_STRATEGY names only pollers that it does not have, as "epollsig" of older
// images. To be asked before gRPC is first used. Errors: FIELD_OUT_OF_RANGE of GRPC_POLL_STRATEGY.
absl::Status CheckGrpcPoller();

}  // namespace rnicd::inline client
