#pragma once

#include "absl/status/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::wire {

// The failure as clients see it, whichever socket it travels on; an empty message for an ok status.
v1::ErrorDetail ToErrorDetail(const absl::Status& status);

}  // namespace rnicd::wire
