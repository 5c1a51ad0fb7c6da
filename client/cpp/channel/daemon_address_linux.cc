#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "base/files/paths.h"
#include "base/status.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/channel/unix_socket_linux.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

std::string PathIn(const std::string& directory, const std::string& name) { return CleanPath(directory) + "/" + name; }

absl::StatusOr<std::shared_ptr<Channel>> ConnectTo(const std::string& path, std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd connected, ConnectUnixSocket(path, SOCK_STREAM, Instant::clock::now() + deadline));
  fcntl(connected.get(), F_SETFL, fcntl(connected.get(), F_GETFL) | O_NONBLOCK);
  return std::make_shared<Channel>(
      DaemonSocket{.socket = UniqueSocket(connected.Release()), .authorization = "", .pipe = nullptr});
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", "/run/rnicd"); }

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsWorkload(const std::string& address,
                                                           std::chrono::milliseconds deadline) {
  return ConnectTo(PathIn(address, "rpc.sock"), deadline);
}

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsOperator(const std::string& address,
                                                           std::chrono::milliseconds deadline) {
  return ConnectTo(PathIn(address, "admin.sock"), deadline);
}

absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return TransportFailure(absl::StatusCode::kInternal, "the fd socket's name is a path");
  }
  return PathIn(address, name);
}

}  // namespace rnicd::inline client
