#include "base/inet.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>

namespace rnicd {

bool InetFromText(bool ipv6, const char* text, uint8_t* bytes) {
  return inet_pton(ipv6 ? AF_INET6 : AF_INET, text, bytes) == 1;
}

std::string InetToText(bool ipv6, const uint8_t* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(ipv6 ? AF_INET6 : AF_INET, bytes, text.data(), text.size());
  return text.data();
}

}  // namespace rnicd
