#include "daemon/rpc/server_call.h"

#include "daemon/rpc/calls.h"
#include "daemon/rpc/connection.h"

namespace rnicd::rpc {

void ServerCall::End(bool cancelled) {
  on_written_ = nullptr;
  if (const auto on_cancel = std::exchange(on_cancel_, nullptr); cancelled && on_cancel != nullptr) {
    on_cancel();
  }
}

template <typename Answer>
void ServerCall::OnLoop(Answer answer) {
  auto run = [weak = connection_, answer = std::move(answer)]() mutable {
    if (const std::shared_ptr<Connection> connection = weak.lock(); connection != nullptr) {
      connection->Run([&](Calls& calls) { answer(calls); });
    }
  };
  loop_->OnThread() ? run() : loop_->Post(std::move(run));
}

void ServerCall::CallLater(std::chrono::nanoseconds delay, std::function<void()> task) {
  OnLoop([id = stream_id_, delay, task = std::move(task)](Calls& calls) mutable {
    calls.CallLater(id, delay, std::move(task));
  });
}

void ServerCall::Begin() {
  OnLoop([id = stream_id_](Calls& calls) { calls.Begin(id); });
}

void ServerCall::Write(std::string message) {
  OnLoop([id = stream_id_, message = std::move(message)](Calls& calls) { calls.Write(id, message); });
}

void ServerCall::Finish(Status status, std::optional<std::string> message) {
  OnLoop([id = stream_id_, status = std::move(status), message = std::move(message)](Calls& calls) mutable {
    calls.Finish(id, std::move(status), message);
  });
}

}  // namespace rnicd::rpc
