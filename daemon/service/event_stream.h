#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "daemon/core/session.h"
#include "daemon/gate/gate.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::service {

// Writes a session's events to its only stream, one at a time, in order.
// Lifetime: owns itself, as gRPC reactors do: deleted in OnDone. Wake-ups reach it through a shared handle that OnDone
//           resets, because a wake-up may be in progress on another thread.
// Threads:  gRPC's, and the threads that push events; `state_` holds the lock.
class EventStream final : public grpc::ServerWriteReactor<v1::WatchEventsResponse> {
 public:
  explicit EventStream(std::shared_ptr<gate::Call> call);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct State {
    Mutex mutex;
    EventStream* stream RNICD_GUARDED_BY(mutex) = nullptr;
    bool writing RNICD_GUARDED_BY(mutex) = false;
    bool finished RNICD_GUARDED_BY(mutex) = false;
  };

  // Begins the next write if no write is in progress and an event waits.
  static void Pump(State& state);
  void WriteNext(State& state) RNICD_REQUIRES(state.mutex);
  void FinishOnce(State& state, const grpc::Status& status) RNICD_REQUIRES(state.mutex);

  const std::shared_ptr<gate::Call> call_;
  const std::shared_ptr<core::Session> session_;
  const std::shared_ptr<State> state_;
  bool attached_ = false;
  v1::WatchEventsResponse response_;
};

}  // namespace rnicd::service
