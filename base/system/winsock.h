#pragma once

namespace rnicd {

// Starts Windows's library of sockets, which every other call of it requires, once for the process. Only on Windows.
// False when the system has none. Threads: safe.
bool StartWinsock();

}  // namespace rnicd
