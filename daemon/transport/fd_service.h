#pragma once

#include "daemon/door/file_handover.h"
#include "daemon/transport/admission.h"

namespace rnicd::transport {

// Serves the packet that waits in the admitted's fd socket. Fetches go to a worker at once. The admitted keeps its
// place until its reply is sent. Never blocks.
void ServeFdPacket(door::FileHandover& handover, const AdmittedConnection& admitted);

}  // namespace rnicd::transport
