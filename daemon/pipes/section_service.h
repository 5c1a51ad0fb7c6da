#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "base/system/os.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/door/file_handover.h"
#include "daemon/pipes/peer.h"

namespace rnicd::pipes {

// A message that hands a handle over, in one direction or the other.
struct SectionRequest {
  Peer peer;
  core::FdTicket ticket{};
  // Value in the client of the handle that it gives; 0 when it takes one.
  uint32_t given = 0;
  // Called once with the handle's value in the client, or 0 after a gift; on any thread. Not called after the end of
  // the handover.
  std::function<void(const absl::StatusOr<uint32_t>&)> on_done;
};

// Serves these messages as transport serves the packets of the fd socket. Never blocks. May call `on_done` at once.
// `os` outlives the handover.
void ServeSection(door::FileHandover& handover, Os& os, SectionRequest request);

}  // namespace rnicd::pipes
