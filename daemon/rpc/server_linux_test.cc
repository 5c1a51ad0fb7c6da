#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "base/files/unique_fd.h"
#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

class SilentClientTest : public ServerTest {
 protected:
  // The connection does not end by itself.
  SilentClientTest() : ServerTest({.greeting_timeout = std::chrono::hours(1)}) {}
};

// Unless the kernel refuses them: the connection ends before anything is received, since a descriptor can block whoever
// closes it.
TEST_F(SilentClientTest, DescriptorsEndTheConnection) {
  const UniqueSocket client = Connect();
  std::array<int, 2> pipe_ends = {-1, -1};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(pipe_ends[0]);
  const UniqueFd writer(pipe_ends[1]);
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    cmsghdr alignment;
  } control = {};
  std::string preface = "PRI";
  iovec part = {.iov_base = preface.data(), .iov_len = preface.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), pipe_ends.data(), sizeof(int));
  ASSERT_EQ(sendmsg(client.get(), &message, 0), static_cast<ssize_t>(preface.size()));
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

}  // namespace
}  // namespace rnicd::rpc
