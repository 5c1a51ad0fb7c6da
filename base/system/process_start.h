#pragma once

namespace rnicd {

// What each program does first in main, so that what it was started with cannot hurt it. It opens standard streams that
// are missing, because a socket or file would get their number, and then the lines for stderr; using them fails. It
// ignores the signals of a reader that has gone and of the limit of file sizes, so that a write is an error. It gives
// threads the usual stack under any limit. And where the system refuses it memory or a thread, it ends with a line and
// status 1, not with a core dump.
void PrepareProcess();

}  // namespace rnicd
