#include <unistd.h>

#include "base/unique_socket.h"

namespace rnicd {

void UniqueSocket::Close(int socket) { close(socket); }

}  // namespace rnicd
