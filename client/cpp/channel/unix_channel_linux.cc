#include <fcntl.h>
#include <sys/un.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/unix_channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/security/credentials.h"

namespace rnicd::inline client {

absl::Status CheckUnixAddress(const std::string& path) {
  constexpr size_t kBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (!path.empty() && path.size() <= kBytesMax) {
    return absl::OkStatus();
  }
  return MakeErrorWithDetail(
      {.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "socket_dir"},
      absl::StrCat("the path of a Unix socket has at most ", kBytesMax, " bytes, not ", path.size(), ": ", path));
}

std::string UnixTarget(const std::string& path) {
  return "unix:" + absl::StrReplaceAll(path, {{"%", "%25"}, {"#", "%23"}, {"?", "%3F"}});
}

std::shared_ptr<grpc::Channel> MakeChannelOver(UniqueFd connected_socket) {
  // gRPC takes the socket for one that does not block.
  fcntl(connected_socket.get(), F_SETFL, fcntl(connected_socket.get(), F_GETFL) | O_NONBLOCK);
  grpc::ChannelArguments arguments = LocalChannelArguments();
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomInsecureChannelFromFd("rnicd", connected_socket.Release(), arguments);
}

std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path) {
  return grpc::CreateCustomChannel(UnixTarget(path), grpc::InsecureChannelCredentials(), LocalChannelArguments());
}

}  // namespace rnicd::inline client
