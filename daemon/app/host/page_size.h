#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rnicd::app {

// What an operator must know of a kernel with pages of this size; empty where they are those of NDK. Some kernels for
// arm64 have pages of 16 or 64 KiB.
std::optional<std::string> WarnOfKernelPages(uint64_t page_bytes);

}  // namespace rnicd::app
