#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/memory/memory_pool.h"

namespace rnicd::app {

// The value of --memory_pool: "PAGE[@NODE]:SIZE[xCOUNT]" separated by commas, such as "4KiB:64MiBx8,2MiB@0:1GiB".
// Errors: InvalidArgument with a text that continues "--memory_pool: must".
absl::StatusOr<std::vector<core::PoolClass>> ParsePoolClasses(std::string_view text);

}  // namespace rnicd::app
