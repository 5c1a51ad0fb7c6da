#pragma once

#include "absl/status/status.h"

namespace rnicd::gate {

// Compares core::kOperations with the services compiled into this program. Errors: kInternal with the methods that have
// no row and the rows that have no method.
absl::Status CheckMethodTable();

}  // namespace rnicd::gate
