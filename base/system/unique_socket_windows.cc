#include <winsock2.h>

#include "base/system/unique_socket.h"

namespace rnicd {

void SocketCloser::Close(int socket) { closesocket(static_cast<SOCKET>(socket)); }

}  // namespace rnicd
