#include <sys/un.h>

#include "client/cpp/channel.h"
#include "client/cpp/unix_channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace rnicd::inline client {

bool FitsUnixAddress(const std::string& path) { return !path.empty() && path.size() < sizeof(sockaddr_un::sun_path); }

std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path) {
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), LocalChannelArguments());
}

}  // namespace rnicd::inline client
