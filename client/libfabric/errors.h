#pragma once

#include <rdma/providers/fi_log.h>

#include <cstddef>

namespace rnicd::fi {

// Says what rnicd.h has just refused the calling thread, and gives `code` back.
int Refused(fi_log_subsys subsystem, const char* what, int code);

// Sentence for the `prov_errno` of an error entry: the daemon's reason. Written to `buffer` too, if there is one.
// Lifetime: static, or that of the buffer.
const char* ReasonText(int reason, char* buffer, size_t bytes);

}  // namespace rnicd::fi
