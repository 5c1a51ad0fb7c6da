#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace rnicd::fuzz {

// The kinds of descriptor a client may send; others are beyond the end.
inline constexpr uint8_t kDescriptorKinds = 20;

// A descriptor of that kind. Of files the length is `bytes`. May be invalid where the machine has no such thing.
UniqueFd OpenDescriptor(uint8_t kind, uint64_t bytes);

}  // namespace rnicd::fuzz
