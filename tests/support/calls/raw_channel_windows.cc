#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/cpp/channel/daemon_pipe_windows.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/client_interceptor.h"
#include "tests/support/calls/raw_channel.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the secret to each call. It keeps the pipe open, with whose end the daemon ends the connection.
class SecretOfCalls final : public ClientInterceptorFactoryInterface {
 public:
  SecretOfCalls(client::DaemonPipe pipe, const std::string& secret)
      : pipe_(std::move(pipe)), bearer_("Bearer " + secret) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo* /*info*/) override { return new OneCall(bearer_); }

 private:
  class OneCall final : public Interceptor {
   public:
    explicit OneCall(const std::string& bearer) : bearer_(bearer) {}

    void Intercept(InterceptorBatchMethods* methods) override {
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
        methods->GetSendInitialMetadata()->emplace("authorization", bearer_);
      }
      methods->Proceed();
    }

   private:
    const std::string& bearer_;
  };

  const client::DaemonPipe pipe_;
  const std::string bearer_;
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectTo(const std::string& pipe_name) {
  const Instant deadline = Instant::clock::now() + kTimeout;
  absl::StatusOr<client::DaemonPipe> pipe = client::DaemonPipe::Open(pipe_name, deadline);
  if (!pipe.ok()) {
    return pipe.status();
  }
  v1::PipeRequest hello;
  hello.mutable_hello();
  const absl::StatusOr<v1::PipeReply> reply = pipe->Ask(hello, deadline);
  if (!reply.ok()) {
    return reply.status();
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<SecretOfCalls>(*std::move(pipe), reply->secret()));
  return grpc::experimental::CreateCustomChannelWithInterceptors("ipv4:127.0.0.1:" + std::to_string(reply->port()),
                                                                 grpc::InsecureChannelCredentials(), arguments,
                                                                 std::move(interceptors));
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket_path) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ConnectTo(socket_path);
  EXPECT_TRUE(channel.ok()) << channel.status();
  // Where nobody listens, so that calls fail.
  return channel.ok() ? *std::move(channel)
                      : grpc::CreateChannel("ipv4:127.0.0.1:9", grpc::InsecureChannelCredentials());
}

}  // namespace rnicd::test
