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

// Writes the daemon's health to an operator: as it is, and then each change.
// Lifetime: owns itself, as gRPC reactors do: deleted in OnDone. The board reaches it through a shared handle that is
//           cut there, because a call may be under way on another thread.
// Threads:  gRPC's and whichever thread changes the board; `state_` holds the lock.
class HealthStream final : public grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse> {
 public:
  using Response = grpc::health::v1::HealthCheckResponse;

  // Without a board the service is one that there is not.
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
    // What was written last.
    std::optional<Response::ServingStatus> told RNICD_GUARDED_BY(mutex);
  };

  // Begins a write when none is under way and there is news.
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
