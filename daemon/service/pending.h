#pragma once

#include <cstdint>
#include <memory>

#include "base/ntstatus.h"
#include "daemon/core/session.h"
#include "daemon/gate/method.h"
#include "daemon/service/memory_operations.h"

// Common parts of the requests that may pend.
namespace rnicd::service {

// Finishes a call with the reply of a single operation.
template <typename Response>
Reply<Response> ReplyTo(const std::shared_ptr<gate::Call>& call, Response* response) {
  return [call, response](const absl::StatusOr<Response>& reply) {
    if constexpr (requires { reply->ntstatus(); }) {
      if (reply.ok() && reply->ntstatus() == static_cast<uint32_t>(NtStatus::kPending)) {
        call->SetNote("pending");
      }
    }
    call->Finish(reply.status(), [&] {
      if (reply.ok()) {
        *response = *reply;
      }
    });
  };
}

template <typename Request>
core::PendingChoice ChoiceOf(const Request& request) {
  return core::PendingChoice{.to_events = request.allow_pending(), .request_context = request.request_context()};
}

template <typename Response>
Response WithNtStatus(NtStatus status) {
  Response response;
  response.set_ntstatus(static_cast<uint32_t>(status));
  return response;
}

// Reports success for a request whose response is empty.
template <typename Response>
core::Done DoneOf(const Reply<Response>& reply) {
  return [reply](const absl::Status& status) {
    reply(status.ok() ? absl::StatusOr<Response>(WithNtStatus<Response>(NtStatus::kSuccess)) : status);
  };
}

// Replies for a request that has completed, or that pends with a caller that allows it.
template <typename Response>
void ReplyToProgress(const absl::StatusOr<core::Progress>& progress, bool allow_pending, const Reply<Response>& reply) {
  if (!progress.ok()) {
    reply(progress.status());
  } else if (*progress == core::Progress::kDone) {
    reply(WithNtStatus<Response>(NtStatus::kSuccess));
  } else if (allow_pending) {
    reply(WithNtStatus<Response>(NtStatus::kPending));
  }
}

// The method of one such request.
template <typename Request, typename Response>
gate::Method Single(const gate::MethodRow& row,
                    void (*operation)(core::Session&, const Request&, const Reply<Response>&)) {
  return gate::Later(row,
                     [operation](const std::shared_ptr<gate::Call>& call, const Request& request, Response* response) {
                       operation(*call->session(), request, ReplyTo(call, response));
                     });
}

}  // namespace rnicd::service
