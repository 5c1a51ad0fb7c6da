#include "client/cpp/channel/channel.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status.h"
#include "client/cpp/client.h"

namespace rnicd::inline client {
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
    const absl::Status status = Client::Connect({.socket_dir = "/nowhere"}).status();
    EXPECT_TRUE(FailedWith(status, ErrorReason::FIELD_OUT_OF_RANGE)) << '"' << obsolete << "\" " << status;
    EXPECT_EQ(ErrorInfoOf(status).field, "GRPC_POLL_STRATEGY");
  }
}

}  // namespace
}  // namespace rnicd::inline client
