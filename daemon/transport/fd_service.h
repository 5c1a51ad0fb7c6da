#pragma once

#include "daemon/door/file_handover.h"
#include "daemon/transport/admission.h"

namespace rnicd::transport {

// Serves the packet that waits in the visitor's fd socket. Fetches go to a worker at once. The visitor keeps its place
// until its reply is sent. Never blocks.
void ServeFdPacket(door::FileHandover& handover, const Visitor& visitor);

}  // namespace rnicd::transport
