#pragma once

#include "client/ctl/memory_options.h"
#include "client/ctl/output.h"

namespace rnicd::ctl {

// Runs alloc and register: gets the memory, registers it if requested, prints, holds, and releases everything.
absl::Status RunOwnMemory(const MemoryOptions& options, const std::string& socket_dir, Output& output);

}  // namespace rnicd::ctl
