#include "daemon/gate/gate.h"

namespace rnicd::gate {

std::shared_ptr<Call> Gate::Run(const Method& method, absl::StatusOr<std::unique_ptr<Message>> request,
                                std::shared_ptr<ClientEnd> end) const {
  const absl::Status read = request.status();
  std::unique_ptr<Message> message = read.ok() ? *std::move(request) : nullptr;
  std::unique_ptr<Message> response(method.response == nullptr ? nullptr : method.response->New());
  const Message* const request_view = message.get();
  Message* const response_view = response.get();
  const auto call = std::make_shared<Call>(services_, connection_, *method.row, method.shape, std::move(message),
                                           std::move(response), std::move(end));
  const auto admitted = call->Admit();
  if (!admitted.ok()) {
    call->Refuse(admitted.status());
  } else if (!read.ok()) {
    call->Finish(read);
  } else {
    method.handler(call, request_view, response_view);
  }
  return call;
}

}  // namespace rnicd::gate
