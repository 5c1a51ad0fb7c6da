#include "daemon/rpc/server_call.h"

#include "daemon/rpc/connection.h"

namespace rnicd::rpc {

bool ServerCall::Charge(uint64_t bytes) { return charge_.Grow(bytes); }

void ServerCall::End(bool cancelled) {
  on_written_ = nullptr;
  if (const auto on_cancel = std::exchange(on_cancel_, nullptr); cancelled && on_cancel != nullptr) {
    on_cancel();
  }
}

template <typename Answer>
void ServerCall::OnLoop(Answer answer) {
  if (loop_->OnThread()) {
    if (const std::shared_ptr<Connection> connection = connection_.lock(); connection != nullptr) {
      answer(*connection);
    }
    return;
  }
  loop_->Post([weak = connection_, answer = std::move(answer)]() mutable {
    if (const std::shared_ptr<Connection> connection = weak.lock(); connection != nullptr) {
      answer(*connection);
    }
  });
}

void ServerCall::CallLater(std::chrono::nanoseconds delay, std::function<void()> task) {
  OnLoop([id = stream_id_, delay, task = std::move(task)](Connection& connection) mutable {
    connection.CallLater(id, delay, std::move(task));
  });
}

void ServerCall::Begin() {
  OnLoop([id = stream_id_](Connection& connection) { connection.BeginStream(id); });
}

void ServerCall::Write(std::string message) {
  OnLoop([id = stream_id_, message = std::move(message)](Connection& connection) {
    connection.WriteMessage(id, message);
  });
}

void ServerCall::Finish(Status status, std::optional<std::string> message) {
  OnLoop([id = stream_id_, status = std::move(status), message = std::move(message)](Connection& connection) mutable {
    connection.FinishCall(id, std::move(status), message);
  });
}

}  // namespace rnicd::rpc
