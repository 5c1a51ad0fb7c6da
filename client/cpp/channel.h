#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "client/cpp/wire_error.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace rnicd::inline client {

// Whether this path fits a Unix socket address.
bool FitsUnixAddress(const std::string& path);

// A channel to a Unix socket that shares its connection with no other channel of the process: a session belongs to a
// connection. Connects on the first call; never fails here.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path);

// One unary call, which fails at once when nothing listens.
// Errors: as StatusFromGrpc.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallUnary(Stub& stub,
                                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                   const std::type_identity_t<Request>& request, std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Response response;
  const absl::Status status = StatusFromGrpc((stub.*method)(&context, request, &response));
  if (!status.ok()) {
    return status;
  }
  return response;
}

}  // namespace rnicd::inline client
