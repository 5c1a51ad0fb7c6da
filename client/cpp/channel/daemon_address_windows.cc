#include <winsock2.h>

#include <utility>

#include "absl/strings/match.h"
#include "base/status.h"
#include "base/system/winsock.h"
#include "base/windows_status.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/daemon_pipe_windows.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

absl::Status Failure(std::string_view call) {
  return TransportFailure(absl::StatusCode::kUnavailable,
                          WindowsDetail(call, static_cast<uint32_t>(WSAGetLastError())));
}

// The listener of the daemon at this port of the machine itself; it answers at once, or nobody listens.
absl::StatusOr<UniqueSocket> ConnectToPort(uint16_t port) {
  if (!StartWinsock()) {
    return Failure("WSAStartup");
  }
  UniqueSocket connected(static_cast<int>(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto number = static_cast<SOCKET>(connected.get());
  if (!connected.valid() || connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failure("connect");
  }
  // A call is sent whole, and its answer is waited for.
  const BOOL no_delay = TRUE;
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&no_delay), sizeof(no_delay));
  u_long does_not_block = 1;
  ioctlsocket(number, static_cast<long>(FIONBIO), &does_not_block);
  return connected;
}

absl::StatusOr<std::shared_ptr<Channel>> ConnectTo(const std::string& address, std::chrono::milliseconds deadline) {
  if (!absl::StartsWithIgnoreCase(address, R"(\\.\pipe\)")) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "socket_dir");
  }
  const Instant limit = Instant::clock::now() + deadline;
  RNICD_ASSIGN_OR_RETURN(DaemonPipe pipe, DaemonPipe::Open(address, limit));
  v1::PipeRequest hello;
  hello.mutable_hello();
  RNICD_ASSIGN_OR_RETURN(const v1::PipeReply reply, pipe.Ask(hello, limit));
  RNICD_ASSIGN_OR_RETURN(UniqueSocket connected, ConnectToPort(static_cast<uint16_t>(reply.port())));
  return std::make_shared<Channel>(DaemonSocket{.socket = std::move(connected),
                                                .authorization = "Bearer " + reply.secret(),
                                                .pipe = std::make_shared<DaemonPipe>(std::move(pipe))});
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", R"(\\.\pipe\rnicd)"); }

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsWorkload(const std::string& address,
                                                           std::chrono::milliseconds deadline) {
  return ConnectTo(address, deadline);
}

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsOperator(const std::string& address,
                                                           std::chrono::milliseconds deadline,
                                                           uint32_t /*generation*/) {
  return ConnectTo(address, deadline);
}

// There is no hand-over here.
std::vector<uint32_t> OlderGenerations(const std::string& /*address*/) { return {}; }

// The pipe itself carries handles.
absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& /*name*/) {
  return address;
}

}  // namespace rnicd::inline client
