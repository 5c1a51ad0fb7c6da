#pragma once

#include "absl/status/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::wire {

// The failure in the form that clients see, on every socket; an empty message for an OK status.
v1::ErrorDetail ToErrorDetail(const absl::Status& status);

// The failure as the daemon created it, so that ErrorInfoOf and NtStatusOf return the same in both processes.
// A reason unknown to this library keeps its number, the given code and the daemon's text.
absl::Status StatusFromDetail(const v1::ErrorDetail& detail, absl::StatusCode code_if_unknown);

}  // namespace rnicd::wire
