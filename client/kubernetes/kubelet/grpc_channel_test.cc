#include "client/kubernetes/kubelet/grpc_channel.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rnicd::kubernetes {
namespace {

class GrpcPollerTest : public testing::Test {
 protected:
  ~GrpcPollerTest() override { unsetenv("GRPC_POLL_STRATEGY"); }
};

TEST_F(GrpcPollerTest, WhatGrpcHasIsUsable) {
  EXPECT_TRUE(CheckGrpcPoller().ok()) << "unset";
  for (const char* usable : {"poll", "epoll1", "epollsig,poll", "all"}) {
    setenv("GRPC_POLL_STRATEGY", usable, 1);
    EXPECT_TRUE(CheckGrpcPoller().ok()) << usable;
  }
}

TEST_F(GrpcPollerTest, WhatWouldEndTheProcessIsRefusedInWords) {
  for (const char* obsolete : {"epollsig", "epollex", "legacy", "", "EPOLL1", " poll", "epollsig,"}) {
    setenv("GRPC_POLL_STRATEGY", obsolete, 1);
    const absl::Status status = CheckGrpcPoller();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << obsolete;
    EXPECT_NE(status.message().find("GRPC_POLL_STRATEGY"), absl::string_view::npos) << status;
  }
}

TEST(FitsUnixAddress, UpToTheLengthThatTheKernelTakes) {
  EXPECT_TRUE(FitsUnixAddress(std::string(107, 'x')));
  EXPECT_FALSE(FitsUnixAddress(std::string(108, 'x')));
  EXPECT_FALSE(FitsUnixAddress(""));
}

// gRPC takes what follows "unix:" for a URI, in which these begin a fragment, a query and another character.
TEST(UnixTarget, CharactersWithAMeaningInAUriArePartOfThePath) {
  EXPECT_EQ(UnixTarget("/run/rnicd/rpc.sock"), "unix:/run/rnicd/rpc.sock");
  EXPECT_EQ(UnixTarget("/run/a#b?c%20d e"), "unix:/run/a%23b%3Fc%2520d e");
}

TEST(StatusFromGrpc, KeepsCodeAndText) {
  EXPECT_EQ(StatusFromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "text")), absl::NotFoundError("text"));
  EXPECT_TRUE(StatusFromGrpc(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace rnicd::kubernetes
