#include <winsock2.h>

#include <algorithm>
#include <cstddef>

#include "base/system/socket_io.h"

namespace rnicd {
namespace {

// Windows counts bytes by an int.
constexpr size_t kBytesMax = size_t{1} << 30;

int CountOf(size_t bytes) { return static_cast<int>(std::min(bytes, kBytesMax)); }

int64_t ResultOf(int result) {
  if (result >= 0) {
    return result;
  }
  return WSAGetLastError() == WSAEWOULDBLOCK ? kTryLater : kSocketFailed;
}

}  // namespace

int64_t ReadSocket(int socket, std::span<char> buffer, bool /*refuses_descriptors*/) {
  return ResultOf(recv(static_cast<SOCKET>(socket), buffer.data(), CountOf(buffer.size()), 0));
}

int64_t SendSocket(int socket, std::string_view bytes) {
  return ResultOf(send(static_cast<SOCKET>(socket), bytes.data(), CountOf(bytes.size()), 0));
}

void ShutDownSocket(int socket) { shutdown(static_cast<SOCKET>(socket), SD_BOTH); }

UniqueSocket CopySocket(const UniqueSocket& /*socket*/) { return {}; }

}  // namespace rnicd
