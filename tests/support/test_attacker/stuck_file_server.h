#pragma once

#include <sys/types.h>

namespace rnicd::test {

// The only file of the file system.
inline constexpr char kStuckFileName[] = "bait";

// Serves a file system of one file (FUSE) that belongs to `user`, until the standard input ends. It is mounted nowhere:
// the line "ok mount=FD" on the standard output names this process's descriptor of the mount. From the line "stick" on,
// no request that a close of the file waits for is answered; with `mute` none at all, and the file is for all users, as
// where fuse.conf says user_allow_other. The end of the process releases those that wait.
// Source: linux/fuse.h. Returns the exit code.
int ServeStuckFiles(uid_t user, bool mute);

}  // namespace rnicd::test
