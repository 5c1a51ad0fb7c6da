#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "client/cpp/transport_failure.h"
#include "rnicd/v1/error.pb.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {

// Every response to a batch has one outcome per item.
template <typename Response>
absl::Status CheckOutcomeCount(const Response& response, size_t count) {
  return static_cast<size_t>(response.outcomes_size()) == count
             ? absl::OkStatus()
             : TransportFailure(absl::StatusCode::kInternal, "a batch was answered with another number of outcomes");
}

// The failure of an item.
inline absl::Status FailureOf(const v1::ErrorDetail& error) {
  return wire::StatusFromDetail(error, absl::StatusCode::kUnknown);
}

}  // namespace rnicd::inline client
