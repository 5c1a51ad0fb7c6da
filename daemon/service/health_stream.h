#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"
#include "daemon/service/refused_stream.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::service {

grpc::health::v1::HealthCheckResponse::ServingStatus ToServingStatus(bool ready);

// Writes the daemon's health to an operator: the current state, then each change.
// Lifetime: owns itself, as gRPC reactors do: deleted in OnDone. The board reaches it through a shared handle that
// OnDone
//           resets, because a call may be in progress on another thread.
// Threads:  gRPC's, and the threads that change the board; `state_` holds the lock.
class HealthStream final : public grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse> {
 public:
  using Response = grpc::health::v1::HealthCheckResponse;

  // A null board means an unknown service.
  HealthStream(std::shared_ptr<gate::Call> call, health::HealthBoard* board);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct State {
    Mutex mutex;
    HealthStream* stream RNICD_GUARDED_BY(mutex) = nullptr;
    bool writing RNICD_GUARDED_BY(mutex) = false;
    bool finished RNICD_GUARDED_BY(mutex) = false;
    // The status written last.
    std::optional<Response::ServingStatus> told RNICD_GUARDED_BY(mutex);
  };

  // Begins a write if none is in progress and the status has changed.
  static void Pump(State& state);
  Response::ServingStatus Current() const;
  void FinishOnce(State& state) RNICD_REQUIRES(state.mutex);

  const std::shared_ptr<gate::Call> call_;
  health::HealthBoard* const board_;
  const std::shared_ptr<State> state_;
  uint64_t subscription_ = 0;
  Response response_;
};

}  // namespace rnicd::service
