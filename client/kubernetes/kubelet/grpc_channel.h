#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

// Calls of gRPC's library to the kubelet and to the plugin's own sockets.
namespace rnicd::kubernetes {

// Whether a Unix socket can have this path.
bool FitsUnixAddress(const std::string& path);
// gRPC's name of a socket at this path: a URI, so that "%", "#" and "?" of the path are written in another way.
std::string UnixTarget(const std::string& path);

// A channel to a Unix socket, which shares its connection with no other channel. Connects on the first call; never
// fails here.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path);

// gRPC's code and text.
absl::Status StatusFromGrpc(const grpc::Status& status);

// One unary call, which fails at once when nothing listens. Errors: as StatusFromGrpc.
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
// images. To be asked before gRPC is first used. Errors: kInvalidArgument.
absl::Status CheckGrpcPoller();

}  // namespace rnicd::kubernetes
