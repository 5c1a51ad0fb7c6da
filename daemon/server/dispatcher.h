#pragma once

#include <memory>
#include <utility>

#include "daemon/gate/gate.h"
#include "daemon/gate/method.h"
#include "daemon/rpc/server_call.h"

namespace rnicd::server {

// Brings the calls of one connection from the wire to the gate: finds the method, reads the message, and cancels the
// call when its client gives up. `methods` outlives it.
class Dispatcher final : public rpc::CallHandler {
 public:
  Dispatcher(const gate::MethodIndex& methods, gate::Gate gate) : methods_(methods), gate_(std::move(gate)) {}

  void OnCall(const std::shared_ptr<rpc::ServerCall>& call) override;
  rpc::Status StatusOf(rpc::Refusal refusal, uint64_t bytes) override;

 private:
  const gate::MethodIndex& methods_;
  const gate::Gate gate_;
};

}  // namespace rnicd::server
