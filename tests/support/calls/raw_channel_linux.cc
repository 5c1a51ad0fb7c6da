#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "tests/support/calls/raw_channel.h"

namespace rnicd::test {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // Channels to one address share a connection unless told otherwise, and a connection carries one session.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace rnicd::test
