#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/ntstatus.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {

// The completion event of a call that was answered inline.
template <typename Response>
absl::StatusOr<v1::RequestCompleted> CompletionFrom(const absl::StatusOr<Response>& response) {
  if (!response.ok()) {
    return response.status();
  }
  v1::RequestCompleted completed;
  completed.set_ntstatus(response->ntstatus());
  if constexpr (requires { response->registration(); }) {
    *completed.mutable_registration() = response->registration();
  }
  return completed;
}

// Sends a request that may complete asynchronously. `completion` runs exactly once: when the event arrives, or before
// this returns when the daemon completes the request inline or the call fails.
template <typename Request, typename Response>
void CallPending(std::shared_ptr<Connection> connection, const Method<Request, Response>& method,
                 std::type_identity_t<Request> request, const PendingRequests::Completion& completion) {
  connection->events().ExpectCallbacks();
  const absl::StatusOr<uint64_t> context = connection->pending().Add(completion);
  if (!context.ok()) {
    completion(context.status());
    return;
  }
  request.set_allow_pending(true);
  request.set_request_context(*context);
  const absl::StatusOr<Response> response = connection->Call(method, request);
  if (response.ok() && response->ntstatus() == static_cast<uint32_t>(NtStatus::kPending)) {
    return;
  }
  if (const std::optional<PendingRequests::Completion> taken = connection->pending().Take(*context)) {
    (*taken)(CompletionFrom(response));
  }
}

}  // namespace rnicd::inline client
