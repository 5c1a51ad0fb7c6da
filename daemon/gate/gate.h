#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "daemon/gate/call.h"
#include "daemon/gate/client_end.h"
#include "daemon/gate/connection_context.h"
#include "daemon/gate/method.h"

namespace rnicd::gate {

// The one path into every handler of a connection: pace, permission, session, metrics, log, audit, and the error on the
// wire.
class Gate {
 public:
  using Message = google::protobuf::Message;

  Gate(const GateServices& services, std::shared_ptr<ConnectionContext> connection)
      : services_(services), connection_(std::move(connection)) {}

  // Reads the request of a call. An error is what the call ends with, unless the caller may not make it anyway.
  using ReadRequest = absl::FunctionRef<absl::StatusOr<std::unique_ptr<Message>>()>;

  // Runs the method's handler, or refuses the call. The rate comes first: calls that would be refused anyway are
  // counted too, and one that is above it is not even read. The result is for the caller to Cancel when the client
  // gives up.
  std::shared_ptr<Call> Run(const Method& method, ReadRequest read, std::shared_ptr<ClientEnd> end) const;

 private:
  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
};

}  // namespace rnicd::gate
