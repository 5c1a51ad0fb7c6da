#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/status.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/daemon_pipe_windows.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_interceptor.h"

namespace rnicd::inline client {
namespace {

// Adds the secret to each call. It keeps the pipe open, with whose end the daemon ends the connection.
class SecretOfCalls final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  SecretOfCalls(DaemonPipe pipe, const std::string& secret) : pipe_(std::move(pipe)), bearer_("Bearer " + secret) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo* /*info*/) override {
    return new OneCall(bearer_);
  }

 private:
  class OneCall final : public grpc::experimental::Interceptor {
   public:
    explicit OneCall(const std::string& bearer) : bearer_(bearer) {}

    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
        methods->GetSendInitialMetadata()->emplace("authorization", bearer_);
      }
      methods->Proceed();
    }

   private:
    const std::string& bearer_;
  };

  const DaemonPipe pipe_;
  const std::string bearer_;
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectTo(const std::string& address,
                                                         std::chrono::milliseconds deadline) {
  if (!absl::StartsWithIgnoreCase(address, R"(\\.\pipe\)")) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "socket_dir");
  }
  const Instant limit = Instant::clock::now() + deadline;
  RNICD_ASSIGN_OR_RETURN(DaemonPipe pipe, DaemonPipe::Open(address, limit));
  v1::PipeRequest hello;
  hello.mutable_hello();
  RNICD_ASSIGN_OR_RETURN(const v1::PipeReply reply, pipe.Ask(hello, limit));
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<SecretOfCalls>(std::move(pipe), reply.secret()));
  return grpc::experimental::CreateCustomChannelWithInterceptors("ipv4:127.0.0.1:" + std::to_string(reply.port()),
                                                                 grpc::InsecureChannelCredentials(),
                                                                 LocalChannelArguments(), std::move(interceptors));
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", R"(\\.\pipe\rnicd)"); }

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsWorkload(const std::string& address,
                                                                 std::chrono::milliseconds deadline) {
  return ConnectTo(address, deadline);
}

absl::StatusOr<OperatorConnection> ConnectAsOperator(const std::string& address, std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, ConnectTo(address, deadline));
  return OperatorConnection{.channel = std::move(channel), .socket = UniqueFd()};
}

bool HasEnded(const OperatorConnection& connection) { return connection.channel == nullptr; }

// The pipe itself carries handles.
absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& /*name*/) {
  return address;
}

}  // namespace rnicd::inline client
