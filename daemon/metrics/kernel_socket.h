#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What the server of the pages asks of the system's sockets, and what libmicrohttpd does not. A socket is the number
// that libmicrohttpd reports.
namespace rnicd::metrics {

struct Ipv4Address {
  // In the host's order: 127.0.0.1 is 0x7f000001.
  uint32_t host = 0;
  uint16_t port = 0;
};

// sockaddr_in, which both systems lay out alike.
struct SocketAddress {
  uint16_t family = 0;
  // In the network's order, as all of the rest.
  unsigned char port[2] = {};
  unsigned char host[4] = {};
  unsigned char unused[8] = {};
};
inline constexpr uint16_t kIpv4Family = 2;

SocketAddress ToSocketAddress(const Ipv4Address& address);
// `address` is a sockaddr, or null. Empty for other families.
std::optional<Ipv4Address> Ipv4Of(const void* address);

// Ends the connection in both directions: the server's loop sees it and closes the socket, which then drops what the
// client has not taken; the kernel would keep it for minutes.
void ShutDown(int socket);
// The server closes a connection once the kernel has all of the response. So the kernel takes little at a time, and on
// Linux has as much time for the rest, where a client takes nothing; otherwise it would keep megabytes for minutes.
void LimitKernel(int socket, std::chrono::nanoseconds time);
// Why the last call of this thread on a socket failed, as "address: cause".
std::string SocketErrorDetail(std::string_view address);

}  // namespace rnicd::metrics
