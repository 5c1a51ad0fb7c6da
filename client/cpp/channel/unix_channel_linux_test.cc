#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/status.h"
#include "client/cpp/channel/unix_channel.h"
#include "client/cpp/client_options.h"

namespace rnicd::inline client {
namespace {

// gRPC takes what follows "unix:" for a URI, in which these begin a fragment, a query and another character.
TEST(UnixTarget, CharactersWithAMeaningInAUriArePartOfThePath) {
  EXPECT_EQ(UnixTarget("/run/rnicd/rpc.sock"), "unix:/run/rnicd/rpc.sock");
  EXPECT_EQ(UnixTarget("/run/a#b?c%20d e"), "unix:/run/a%23b%3Fc%2520d e");
}

TEST(CheckUnixAddress, APathThatIsTooLongIsRefusedWithTheNumber) {
  EXPECT_TRUE(CheckUnixAddress(std::string(107, 'x')).ok());
  const absl::Status refused = CheckUnixAddress(std::string(108, 'x'));
  EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(refused).field, "socket_dir");
  EXPECT_NE(refused.message().find("at most 107 bytes, not 108: xxx"), absl::string_view::npos) << refused;
  EXPECT_FALSE(CheckUnixAddress("").ok());
}

TEST(DefaultSocketDir, IsNamedByTheEnvironment) {
  unsetenv("RNICD_SOCKET_DIR");
  EXPECT_EQ(DefaultSocketDir(), "/run/rnicd");
  setenv("RNICD_SOCKET_DIR", "", 1);
  EXPECT_EQ(DefaultSocketDir(), "/run/rnicd");
  setenv("RNICD_SOCKET_DIR", "/sockets", 1);
  EXPECT_EQ(ClientOptions().socket_dir, "/sockets");
  unsetenv("RNICD_SOCKET_DIR");
}

}  // namespace
}  // namespace rnicd::inline client
