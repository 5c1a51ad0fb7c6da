#include <winsock2.h>
// Behind it, as it uses its types.
#include <ws2tcpip.h>

#include <thread>

#include "daemon/pipes/front_door_fixture.h"
#include "daemon/pipes/security.h"

namespace rnicd::pipes {
namespace {

HANDLE HandleOf(const UniqueFd& fd) { return LongToHandle(fd.get()); }

}  // namespace

PipeClient::PipeClient(const std::string& name) {
  Eventually([&] {
    handle_.Reset(HandleToLong(CreateFileA(name.c_str(), kClientRights, 0, nullptr, OPEN_EXISTING,
                                           SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, nullptr)));
    return handle_.valid() || GetLastError() != ERROR_PIPE_BUSY;
  });
}

bool PipeClient::Send(const std::string& bytes) const {
  DWORD sent = 0;
  return WriteFile(HandleOf(handle_), bytes.data(), static_cast<DWORD>(bytes.size()), &sent, nullptr) != 0;
}

std::optional<v1::PipeReply> PipeClient::Receive() const {
  DWORD bytes = 0;
  bool open = true;
  EXPECT_TRUE(Eventually([&] {
    open = PeekNamedPipe(HandleOf(handle_), nullptr, 0, nullptr, &bytes, nullptr) != 0;
    return !open || bytes > 0;
  })) << "no reply, and the pipe stays open";
  std::string buffer(4096, '\0');
  v1::PipeReply reply;
  if (!open || ReadFile(HandleOf(handle_), buffer.data(), 4096, &bytes, nullptr) == 0) {
    return std::nullopt;
  }
  EXPECT_TRUE(reply.ParseFromString(buffer.substr(0, bytes)));
  return reply;
}

v1::PipeReply PipeClient::Ask(const v1::PipeRequest& request) const {
  EXPECT_TRUE(Send(request.SerializeAsString()));
  std::optional<v1::PipeReply> reply = Receive();
  EXPECT_TRUE(reply.has_value()) << "the daemon has closed the pipe";
  return reply.value_or(v1::PipeReply());
}

v1::PipeReply PipeClient::Hello() const {
  v1::PipeRequest request;
  request.mutable_hello();
  return Ask(request);
}

v1::PipeReply PipeClient::Give(const core::FdTicket& ticket, uint32_t handle) const {
  v1::PipeRequest request;
  request.mutable_give_section()->set_fd_ticket(std::string(ticket.begin(), ticket.end()));
  request.mutable_give_section()->set_handle(handle);
  return Ask(request);
}

v1::PipeReply PipeClient::Take(const core::FdTicket& ticket) const {
  v1::PipeRequest request;
  request.mutable_take_section()->set_fd_ticket(std::string(ticket.begin(), ticket.end()));
  return Ask(request);
}

bool PipeClient::HangsUp() const {
  return Eventually([&] { return PeekNamedPipe(HandleOf(handle_), nullptr, 0, nullptr, nullptr, nullptr) == 0; });
}

UniqueSocket ConnectSilentlyTo(uint32_t port) {
  const SOCKET raw = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
  UniqueSocket connected(static_cast<int>(raw));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u_short>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return connected;
}

// On a socket for IPv6 and IPv4, as gRPC has it.
UniqueSocket ConnectByBothFamiliesTo(uint32_t port) {
  const SOCKET raw = socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
  UniqueSocket connected(static_cast<int>(raw));
  const DWORD only_ipv6 = 0;
  EXPECT_EQ(setsockopt(raw, IPPROTO_IPV6, IPV6_V6ONLY, reinterpret_cast<const char*>(&only_ipv6), sizeof(only_ipv6)),
            0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<u_short>(port));
  EXPECT_EQ(inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr), 1);
  EXPECT_EQ(connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(raw, "PRI", 3, 0), 3);
  return connected;
}

// As every client of gRPC does; before its first bytes a connection is nobody's.
UniqueSocket ConnectTo(uint32_t port) {
  UniqueSocket connected = ConnectSilentlyTo(port);
  EXPECT_EQ(send(static_cast<SOCKET>(connected.get()), "PRI", 3, 0), 3);
  return connected;
}

bool HangsUp(const UniqueSocket& socket) {
  WSAPOLLFD watched = {.fd = static_cast<SOCKET>(socket.get()), .events = POLLRDNORM, .revents = 0};
  char byte = 0;
  return WSAPoll(&watched, 1, 20'000) == 1 && recv(static_cast<SOCKET>(socket.get()), &byte, 1, 0) <= 0;
}

FrontDoorTest::FrontDoorTest() {
  static int last = 0;
  const std::string name =
      R"(\\.\pipe\rnicd-test-)" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(++last);
  names_ = {.workloads = name, .operators = name + "-admin"};
}

}  // namespace rnicd::pipes
