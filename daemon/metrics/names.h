#pragma once

#include <string>
#include <string_view>

#include "daemon/core/tenant/ledger.h"

namespace rnicd::metrics {

// "quota_pinned_bytes" for "QUOTA_PINNED_BYTES".
std::string Lower(std::string_view text);

// True for a resource measured in bytes; the others are counted.
bool InBytes(core::Resource resource);

}  // namespace rnicd::metrics
