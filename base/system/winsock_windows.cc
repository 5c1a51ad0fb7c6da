#include <winsock2.h>

#include "base/system/winsock.h"

namespace rnicd {

bool StartWinsock() {
  static const bool started = [] {
    WSADATA facts;
    return WSAStartup(MAKEWORD(2, 2), &facts) == 0;
  }();
  return started;
}

}  // namespace rnicd
