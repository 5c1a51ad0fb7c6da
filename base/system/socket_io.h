#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/system/unique_socket.h"

namespace rnicd {

// Results of the calls below that are no number of bytes: the socket has none, or takes none, for now; or it is of no
// use any more.
inline constexpr int64_t kTryLater = -1;
inline constexpr int64_t kSocketFailed = -2;

// The system calls on a connected, non-blocking socket. Threads: safe.

// Bytes read; 0 when the client has closed its end, and when it has sent descriptors beside the bytes, which are not
// received. With `refuses_descriptors` nobody looks for them. Windows has none.
int64_t ReadSocket(int socket, std::span<char> buffer, bool refuses_descriptors);
// Bytes that the socket took, maybe not all.
int64_t SendSocket(int socket, std::string_view bytes);
// Ends the connection for both sides, whoever else has the socket open.
void ShutDownSocket(int socket);

// Another descriptor of the same socket; invalid without descriptors, and on Windows.
UniqueSocket CopySocket(const UniqueSocket& socket);

}  // namespace rnicd
