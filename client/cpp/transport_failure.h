#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace rnicd::inline client {

// A failure that the daemon did not report: it is not running, did not respond in time, or broke the protocol. Carries
// no ErrorInfo, so ErrorInfoOf returns INTERNAL_FAULT; check IsTransportFailure first where the difference matters.
absl::Status TransportFailure(absl::StatusCode code, std::string_view message);

// True for a failure created by TransportFailure: whether the daemon executed the request is unknown.
bool IsTransportFailure(const absl::Status& status);

}  // namespace rnicd::inline client
