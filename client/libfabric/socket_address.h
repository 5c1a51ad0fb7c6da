#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

namespace rnicd::fi {

// Bytes of an address of the Internet, version 4 or 6; 0 for another kind.
size_t AddressBytes(const sockaddr_storage& address);
// Takes an address that a program gives. False when it is not one of the Internet, or too short. Reads no more than its
// family has.
bool LoadAddress(const void* from, size_t bytes, sockaddr_storage* address);
// Answers fi_getname and fi_getpeer: as much as fits, and the bytes that it has. -FI_ETOOSMALL when it did not fit.
int StoreAddress(const sockaddr_storage& address, void* to, size_t* bytes);
// Replaces an address of an fi_info, which fi_freeinfo gives to free(). False when memory is short.
bool SetInfoAddress(const sockaddr_storage& address, void** place, size_t* bytes);

// In host order.
uint16_t PortOf(const sockaddr_storage& address);
void SetPort(sockaddr_storage* address, uint16_t port);
// 0.0.0.0 or ::, and the port of `address`.
sockaddr_storage AnyHost(const sockaddr_storage& address);
// "127.0.0.1:40001", "::1:40001".
std::string AddressText(const sockaddr_storage& address);

}  // namespace rnicd::fi
