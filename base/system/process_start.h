#pragma once

namespace rnicd {

// The first step of each program's main: makes the process independent of the environment that it was started in. It
// opens missing standard streams, because otherwise a socket or file would get their number, and then the lines for
// stderr; using such a stream fails. It ignores the signals for a closed reader (SIGPIPE) and for the limit of file
// sizes (SIGXFSZ), so that the write returns an error instead. It gives threads the usual stack size under any limit.
// When the system refuses memory or a thread, the process ends with a line and status 1, not with a core dump.
void PrepareProcess();

}  // namespace rnicd
