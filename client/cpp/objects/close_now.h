#pragma once

#include <memory>

#include "absl/status/status.h"
#include "base/status.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {

// Does what the destructor of `open` does and returns the outcome; the object is closed from then on. `request` makes
// the request from the object's id.
// Errors: OBJECT_NOT_FOUND when it is closed or moved from; the call's, and it stays open.
template <typename Open, typename Request, typename Response>
absl::Status CloseNow(std::shared_ptr<Open>& open, const Method<Request, Response>& method,
                      Request (*request)(decltype(Open::id))) {
  if (open == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_RETURN_IF_ERROR(open->connection->Call(method, request(open->id)).status());
  open->closed = true;
  open.reset();
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
