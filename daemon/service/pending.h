#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/ntstatus.h"
#include "daemon/core/session/session.h"
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
core::Done<> DoneOf(const Reply<Response>& reply) {
  return [reply](const absl::Status& status) {
    reply(status.ok() ? absl::StatusOr<Response>(WithNtStatus<Response>(NtStatus::kSuccess)) : status);
  };
}

// Finishes a request that has ended; one that pends calls `done` itself.
template <typename T>
void FinishUnlessPending(const core::MaybePending<T>& begun, const std::type_identity_t<core::Done<T>>& done) {
  if (!begun.pending()) {
    done(begun.outcome());
  }
}

// Replies for a request that has ended, or that pends with a caller that allows it. `done` replies with its outcome.
template <typename Response, typename T>
void ReplyToBegun(const core::MaybePending<T>& begun, bool allow_pending,
                  const std::type_identity_t<core::Done<T>>& done, const Reply<Response>& reply) {
  FinishUnlessPending(begun, done);
  if (begun.pending() && allow_pending) {
    reply(WithNtStatus<Response>(NtStatus::kPending));
  }
}

// The method of one such request.
template <typename Request, typename Response>
gate::Method Single(const core::Operation& row,
                    void (*operation)(const core::SessionGuard&, const Request&, const Reply<Response>&)) {
  return gate::Later(row, [operation](const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                                      const Request& request,
                                      Response* response) { operation(session, request, ReplyTo(call, response)); });
}

}  // namespace rnicd::service
