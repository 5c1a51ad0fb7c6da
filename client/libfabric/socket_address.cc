#include "client/libfabric/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace rnicd::fi {
namespace {

sockaddr_in& AsIn(sockaddr_storage* address) { return *reinterpret_cast<sockaddr_in*>(address); }
const sockaddr_in& AsIn(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in&>(address); }
sockaddr_in6& AsIn6(sockaddr_storage* address) { return *reinterpret_cast<sockaddr_in6*>(address); }
const sockaddr_in6& AsIn6(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in6&>(address); }

size_t BytesOfFamily(sa_family_t family) {
  if (family == AF_INET) {
    return sizeof(sockaddr_in);
  }
  return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

}  // namespace

size_t AddressBytes(const sockaddr_storage& address) { return BytesOfFamily(address.ss_family); }

bool LoadAddress(const void* from, size_t bytes, sockaddr_storage* address) {
  sa_family_t family = AF_UNSPEC;
  if (from == nullptr || bytes < sizeof(sockaddr)) {
    return false;
  }
  std::memcpy(&family, static_cast<const std::byte*>(from) + offsetof(sockaddr, sa_family), sizeof(family));
  const size_t needed = BytesOfFamily(family);
  if (needed == 0 || bytes < needed) {
    return false;
  }
  *address = {};
  std::memcpy(address, from, needed);
  return true;
}

int StoreAddress(const sockaddr_storage& address, void* to, size_t* bytes) {
  const size_t needed = AddressBytes(address);
  const size_t copied = std::min(needed, *bytes);
  if (copied != 0) {
    std::memcpy(to, &address, copied);
  }
  *bytes = needed;
  return copied < needed ? -FI_ETOOSMALL : 0;
}

bool SetInfoAddress(const sockaddr_storage& address, void** place, size_t* bytes) {
  const size_t needed = AddressBytes(address);
  void* const copy = std::malloc(needed);
  if (copy == nullptr) {
    return false;
  }
  std::memcpy(copy, &address, needed);
  std::free(*place);
  *place = copy;
  *bytes = needed;
  return true;
}

uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? AsIn6(address).sin6_port : AsIn(address).sin_port);
}

void SetPort(sockaddr_storage* address, uint16_t port) {
  (address->ss_family == AF_INET6 ? AsIn6(address).sin6_port : AsIn(address).sin_port) = htons(port);
}

sockaddr_storage AnyHost(const sockaddr_storage& address) {
  sockaddr_storage any = {};
  any.ss_family = address.ss_family;
  SetPort(&any, PortOf(address));
  return any;
}

std::string AddressText(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const void* host = address.ss_family == AF_INET6 ? static_cast<const void*>(&AsIn6(address).sin6_addr)
                                                   : static_cast<const void*>(&AsIn(address).sin_addr);
  inet_ntop(address.ss_family, host, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(PortOf(address));
}

}  // namespace rnicd::fi
