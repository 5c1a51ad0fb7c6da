#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "daemon/gate/gate.h"
#include "daemon/gate/method.h"
#include "daemon/rpc/server_call.h"

namespace rnicd::server {

// Code and text of the reason's row, and an RpcStatus with the ErrorDetail in the trailer.
rpc::Status ToWireStatus(const absl::Status& status);

// Brings the calls of one connection from the wire to the gate: finds the method, reads the message, and cancels the
// call when its client gives up. `methods` outlives it.
class Dispatcher {
 public:
  // `message_bytes_max` is the limit that a message was refused for.
  Dispatcher(const gate::MethodIndex& methods, gate::Gate gate, uint64_t message_bytes_max)
      : methods_(methods), gate_(std::move(gate)), message_bytes_max_(message_bytes_max) {}

  // Also a call that the wire refuses: as every other it is counted, measured and logged.
  void Dispatch(const std::shared_ptr<rpc::ServerCall>& call) const;

 private:
  absl::Status ErrorOf(const rpc::Refusal& refusal) const;

  const gate::MethodIndex& methods_;
  const gate::Gate gate_;
  const uint64_t message_bytes_max_;
};

}  // namespace rnicd::server
