#include <unistd.h>

#include "base/system/unique_socket.h"

namespace rnicd {

void SocketCloser::Close(int socket) { close(socket); }

}  // namespace rnicd
