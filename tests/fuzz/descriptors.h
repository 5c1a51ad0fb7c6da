#pragma once

#include <cstdint>

#include "base/files/unique_fd.h"

namespace rnicd::fuzz {

// Number of kinds of descriptor a client may send; valid kinds are smaller.
inline constexpr uint8_t kDescriptorKinds = 20;

// A descriptor of this kind. Files are `bytes` long. May be invalid if the machine does not support the kind.
UniqueFd OpenDescriptor(uint8_t kind, uint64_t bytes);

}  // namespace rnicd::fuzz
