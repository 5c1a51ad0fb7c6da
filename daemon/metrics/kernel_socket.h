#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// What the server of the pages asks of the system's sockets, and what libmicrohttpd does not. A socket is the number
// that libmicrohttpd reports.
namespace rnicd::metrics {

// sockaddr_in6, whose first 8 bytes are those of sockaddr_in; both systems lay them out alike. All bytes but those of
// the family are in the network's order.
struct SocketAddress {
  uint16_t family = 0;
  unsigned char port[2] = {};
  // The host of sockaddr_in, and the flow of sockaddr_in6.
  unsigned char ipv4[4] = {};
  unsigned char ipv6[16] = {};
  uint32_t scope = 0;
};
inline constexpr uint16_t kIpv4Family = 2;
extern const uint16_t kIpv6Family;

// Writes the 4 or 16 bytes of a numeric address. False for any other text.
bool ParseNumericHost(uint16_t family, const std::string& text, unsigned char* host);
// Family and host of a sockaddr; no family for null.
SocketAddress HostOf(const void* address);
// Whether the kernel has sockets of IPv6.
bool HasIpv6();

// Ends the connection in both directions: the server's loop detects that and closes the socket, which then drops unread
// output; otherwise the kernel would keep it for minutes.
void ShutDown(int socket);
// Limits what the kernel buffers for the socket and, on Linux, sets the timeout `time` for a client that reads nothing.
// The server closes a connection once the kernel has all of the response; without the limits the kernel would keep
// megabytes for minutes.
void LimitKernel(int socket, std::chrono::nanoseconds time);
// Why the last call of this thread on a socket failed, as "address: cause".
std::string SocketErrorDetail(std::string_view address);

}  // namespace rnicd::metrics
