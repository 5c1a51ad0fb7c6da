#include "daemon/gate/gate.h"

#include <chrono>

namespace rnicd::gate {

Gate::Begun Gate::Begin(const Method& method, std::shared_ptr<ClientEnd> end) const {
  std::unique_ptr<Message> response(method.response == nullptr ? nullptr : method.response->New());
  auto call =
      std::make_shared<Call>(services_, connection_, *method.row, method.shape, std::move(response), std::move(end));
  std::weak_ptr<Call> running = call;
  std::chrono::nanoseconds wait{0};
  if (const absl::Status counted = call->CountAgainstRate(&wait); !counted.ok()) {
    call->FinishLater(wait, counted);
    call.reset();
  }
  return {.admitted = std::move(call), .running = std::move(running)};
}

void Gate::Run(std::shared_ptr<Call> admitted, const Method& method, absl::StatusOr<std::unique_ptr<Message>> request) {
  const absl::Status readable = request.status();
  const Message* const request_view = readable.ok() ? admitted->TakeRequest(*std::move(request)) : nullptr;
  const auto guard = admitted->Admit();
  if (!guard.ok()) {
    admitted->Finish(guard.status());
  } else if (!readable.ok()) {
    admitted->Finish(readable);
  } else {
    method.handler(admitted, guard->has_value() ? &**guard : nullptr, request_view, admitted->response_.get());
  }
}

}  // namespace rnicd::gate
