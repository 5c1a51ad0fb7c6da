// What needs no daemon. Calls are tested with the real one: tests/integration/library/librnicd_*_test.cc.
#include "client/cpp/client.h"

#include <chrono>
#include <string>

#include "base/status.h"
#include "client/cpp/channel/fake_fd_server_fixture.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

TEST(ClientTest, AbsentDaemonIsATransportFailureAtOnce) {
  const TemporaryDirectory empty;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& directory : {empty.path(), empty.path() + "/absent"}) {
    const auto client = Client::Connect({.socket_dir = directory});
    EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(IsTransportFailure(client.status())) << client.status();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ClientTest, OverlongSocketDirectoryIsRefusedHere) {
  const auto client = Client::Connect({.socket_dir = std::string(200, 'x')});
  EXPECT_TRUE(FailedWith(client.status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(client.status()).field, "socket_dir");
}

}  // namespace
}  // namespace rnicd::inline client
