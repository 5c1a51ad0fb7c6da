#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace rnicd::inline client {

// A failure that the daemon did not report: it is not there, did not answer in time, or broke the protocol.
// Carries no ErrorInfo, so ErrorInfoOf answers INTERNAL_FAULT; ask IsTransportFailure first where it matters.
absl::Status TransportFailure(absl::StatusCode code, std::string_view message);

// True for a failure made by TransportFailure: nothing is known about whether the daemon did what was asked.
bool IsTransportFailure(const absl::Status& status);

}  // namespace rnicd::inline client
