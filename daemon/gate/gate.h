#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <utility>

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

  // Runs the method's handler, or refuses the call. A request that could not be read is an error, which the call ends
  // with unless the caller may not make it anyway. The result is for the caller to Cancel when the client gives up.
  std::shared_ptr<Call> Run(const Method& method, absl::StatusOr<std::unique_ptr<Message>> request,
                            std::shared_ptr<ClientEnd> end) const;

 private:
  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
};

}  // namespace rnicd::gate
