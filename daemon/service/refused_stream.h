#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "daemon/gate/gate.h"

namespace rnicd::service {

// A refused stream: ends together with its call, with the call's status.
// Lifetime: owns itself, as gRPC reactors do: deleted in OnDone.
template <typename Response>
class RefusedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit RefusedStream(std::weak_ptr<gate::Call> call) : call_(std::move(call)) {}

  void OnCancel() override {
    if (const std::shared_ptr<gate::Call> call = call_.lock(); call != nullptr) {
      call->Cancel();
    }
  }
  void OnDone() override { delete this; }

 private:
  const std::weak_ptr<gate::Call> call_;
};

}  // namespace rnicd::service
