#pragma once

#include "client/ctl/memory_options.h"
#include "client/ctl/output.h"

namespace rnicd::ctl {

// What alloc and register do: get the memory, register it where asked for, print, hold, give everything back.
absl::Status RunOwnMemory(const MemoryOptions& options, const std::string& socket_dir, Output& output);

}  // namespace rnicd::ctl
