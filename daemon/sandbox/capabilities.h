#pragma once

#include "absl/status/status.h"

namespace rnicd::sandbox {

// Leaves the calling thread with no capability, or with CAP_IPC_LOCK alone if `keep_ipc_lock` is set and the thread has
// it, and then effective and permitted only: the inheritable, ambient and bounding sets matter when a program is
// executed, which this process never does. A process with CAP_SETPCAP also empties the bounding set and locks the
// securebits. Without it, neither can be changed, and with no_new_privs neither can add a capability.
// Errors: kInternal with the step and its errno.
// Source: capabilities(7).
absl::Status DropCapabilities(bool keep_ipc_lock);

}  // namespace rnicd::sandbox
