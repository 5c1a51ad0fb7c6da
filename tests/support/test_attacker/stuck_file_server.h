#pragma once

#include <sys/types.h>

namespace rnicd::test {

// The only file of the file system.
inline constexpr char kStuckFileName[] = "bait";

// Serves a file system of one file (FUSE) that belongs to `user`, until the standard input ends. It is mounted nowhere:
// the line "ok mount=FD" on the standard output names this process's descriptor of the mount. From the line "stick" on,
// no request that a close of the file waits for is answered. The end of the process releases those that wait.
// Source: linux/fuse.h. Returns the exit code.
int ServeStuckFiles(uid_t user);

}  // namespace rnicd::test
