#include "base/files/paths.h"
#include "base/status.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/channel/unix_channel.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

std::string PathIn(const std::string& directory, const std::string& name) { return CleanPath(directory) + "/" + name; }

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectTo(const std::string& path) {
  RNICD_RETURN_IF_ERROR(CheckUnixAddress(path));
  RNICD_RETURN_IF_ERROR(CheckGrpcPoller());
  return MakeUnixChannel(path);
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", "/run/rnicd"); }

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsWorkload(const std::string& address,
                                                                 std::chrono::milliseconds /*deadline*/) {
  return ConnectTo(PathIn(address, "rpc.sock"));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsOperator(const std::string& address,
                                                                 std::chrono::milliseconds /*deadline*/) {
  return ConnectTo(PathIn(address, "admin.sock"));
}

absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return TransportFailure(absl::StatusCode::kInternal, "the fd socket's name is a path");
  }
  return PathIn(address, name);
}

}  // namespace rnicd::inline client
