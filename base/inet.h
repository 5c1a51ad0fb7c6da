#pragma once

#include <cstdint>
#include <string>

// Addresses of the Internet as text, by the system's own functions. Source: inet_pton(3), inet_ntop(3).
namespace rnicd {

// Writes 4 bytes, or 16 for IPv6. False for text that is no address of that kind; a zone is none.
bool InetFromText(bool ipv6, const char* text, uint8_t* bytes);
std::string InetToText(bool ipv6, const uint8_t* bytes);

}  // namespace rnicd
