#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "base/files/paths.h"
#include "base/status.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/channel/unix_channel.h"
#include "client/cpp/channel/unix_socket_linux.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

std::string PathIn(const std::string& directory, const std::string& name) { return CleanPath(directory) + "/" + name; }

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path, std::chrono::milliseconds deadline) {
  RNICD_RETURN_IF_ERROR(CheckGrpcPoller());
  return ConnectUnixSocket(path, SOCK_STREAM, Instant::clock::now() + deadline);
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", "/run/rnicd"); }

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsWorkload(const std::string& address,
                                                                 std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTo(PathIn(address, "rpc.sock"), deadline));
  return MakeChannelOver(std::move(socket));
}

absl::StatusOr<OperatorConnection> ConnectAsOperator(const std::string& address, std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTo(PathIn(address, "admin.sock"), deadline));
  UniqueFd watched(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  return OperatorConnection{.channel = MakeChannelOver(std::move(socket)), .socket = std::move(watched)};
}

bool HasEnded(const OperatorConnection& connection) {
  pollfd wait = {.fd = connection.socket.get(), .events = POLLRDHUP, .revents = 0};
  return !connection.socket.valid() || poll(&wait, 1, 0) != 0;
}

absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return TransportFailure(absl::StatusCode::kInternal, "the fd socket's name is a path");
  }
  return PathIn(address, name);
}

}  // namespace rnicd::inline client
