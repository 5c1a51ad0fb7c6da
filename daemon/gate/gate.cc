#include "daemon/gate/gate.h"

#include <chrono>

namespace rnicd::gate {

std::shared_ptr<Call> Gate::Run(const Method& method, ReadRequest read, std::shared_ptr<ClientEnd> end) const {
  std::unique_ptr<Message> response(method.response == nullptr ? nullptr : method.response->New());
  Message* const response_view = response.get();
  auto call =
      std::make_shared<Call>(services_, connection_, *method.row, method.shape, std::move(response), std::move(end));
  std::chrono::nanoseconds wait{0};
  if (const absl::Status counted = call->CountAgainstRate(&wait); !counted.ok()) {
    call->FinishLater(wait, counted);
    return call;
  }
  absl::StatusOr<std::unique_ptr<Message>> request = read();
  const absl::Status readable = request.status();
  const Message* const request_view = readable.ok() ? call->TakeRequest(*std::move(request)) : nullptr;
  const auto admitted = call->Admit();
  if (!admitted.ok()) {
    call->Finish(admitted.status());
  } else if (!readable.ok()) {
    call->Finish(readable);
  } else {
    method.handler(call, admitted->has_value() ? &**admitted : nullptr, request_view, response_view);
  }
  return call;
}

}  // namespace rnicd::gate
