#pragma once

#include "absl/status/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::wire {

// The failure in the form that clients see, on every socket; an empty message for an OK status.
v1::ErrorDetail ToErrorDetail(const absl::Status& status);

}  // namespace rnicd::wire
