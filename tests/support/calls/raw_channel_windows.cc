#include <gtest/gtest.h>

#include "client/cpp/channel/daemon_address.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "tests/support/calls/raw_channel.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket_path) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = client::ConnectAsWorkload(socket_path, kTimeout);
  EXPECT_TRUE(channel.ok()) << channel.status();
  // Where nobody listens, so that calls fail.
  return channel.ok() ? *std::move(channel)
                      : grpc::CreateChannel("ipv4:127.0.0.1:9", grpc::InsecureChannelCredentials());
}

}  // namespace rnicd::test
