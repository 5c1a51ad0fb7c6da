#pragma once

#include <cstdint>
#include <type_traits>

#include "base/ntstatus.h"
#include "daemon/core/session/session.h"
#include "daemon/gate/method.h"

// Common parts of the requests that may pend.
namespace rnicd::service {

template <typename Request>
core::PendingChoice ChoiceOf(const Request& request) {
  return core::PendingChoice{.to_events = request.allow_pending(), .request_context = request.request_context()};
}

template <typename Response>
Response WithNtStatus(NtStatus status) {
  Response response;
  if constexpr (requires { response.set_ntstatus(0); }) {
    response.set_ntstatus(static_cast<uint32_t>(status));
  }
  return response;
}

// Reports success for a request whose response has nothing but that.
template <typename Response>
core::Done<> DoneOf(const gate::Reply<Response>& reply) {
  return [reply](const absl::Status& status) {
    reply(status.ok() ? absl::StatusOr<Response>(WithNtStatus<Response>(NtStatus::kSuccess)) : status);
  };
}

// Replies for a request that has ended, or that pends with a caller that allows it. `done` replies with its outcome.
template <typename Response, typename T>
void ReplyToBegun(const core::MaybePending<T>& begun, bool allow_pending,
                  const std::type_identity_t<core::Done<T>>& done, const gate::Reply<Response>& reply) {
  core::FinishUnlessPending(begun, done);
  if (begun.pending() && allow_pending) {
    reply(WithNtStatus<Response>(NtStatus::kPending));
  }
}

}  // namespace rnicd::service
