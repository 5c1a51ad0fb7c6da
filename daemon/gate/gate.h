#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/gate/call.h"
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

  struct Begun {
    // For Run. Null above the rate: the call is refused in a while, and its request is not even read.
    std::shared_ptr<Call> admitted;
    // For the caller to Cancel when the client gives up.
    std::weak_ptr<Call> running;
  };

  // Begins a call and counts it against its caller's rate. That comes first: calls that would be refused anyway are
  // counted too.
  Begun Begin(const Method& method, std::shared_ptr<ClientEnd> end) const;
  // Runs the handler of a call of `method`, or refuses the call. An error of its request is what it ends with, unless
  // the caller may not make it anyway.
  static void Run(std::shared_ptr<Call> admitted, const Method& method,
                  absl::StatusOr<std::unique_ptr<Message>> request);

 private:
  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
};

}  // namespace rnicd::gate
