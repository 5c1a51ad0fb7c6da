#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "daemon/pipes/peer.h"

namespace rnicd::pipes {

// Duplicates a client's handle into the daemon, with the rights to map and to query, and none more. Never gains a right
// that the client does not have: a daemon with more rights than its client would be one that the client can use.
// Closing what the client sent may block. Errors: MEMORY_NOT_MEMORY, also for no handle at all; those of Os::Inspect.
absl::StatusOr<UniqueFd> TakeFromClient(const WindowsProcess& client, uint32_t handle, Os& os);

// Duplicates a section or an event into the client, with the rights that it needs to use it, and returns the handle's
// value there. Errors: INTERNAL_FAULT, above all for a client that exits.
absl::StatusOr<uint32_t> GiveToClient(const WindowsProcess& client, const UniqueFd& handle, Os& os);

}  // namespace rnicd::pipes
