#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace rnicd::app {

// Refuses a kernel whose pages are not those of NDK: kernels for arm64 exist with pages of 16 and 64 KiB. Files of 4
// KiB would occupy more memory than is charged, and pieces of them could neither be mapped nor registered by
// themselves. Errors: kFailedPrecondition.
absl::Status RequireNdkPages(uint64_t kernel_page_bytes);

}  // namespace rnicd::app
