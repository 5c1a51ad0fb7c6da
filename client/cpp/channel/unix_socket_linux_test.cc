#include "client/cpp/channel/unix_socket_linux.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/status.h"
#include "client/cpp/channel/fake_fd_server_fixture.h"
#include "client/cpp/channel/full_listener_fixture.h"
#include "client/cpp/client.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

constexpr std::chrono::hours kNeverReached{1};
constexpr std::chrono::milliseconds kSoon{100};

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

class UnixSocketTest : public testing::TestWithParam<int> {
 protected:
  absl::StatusOr<UniqueFd> Connect(Instant::duration wait) {
    return ConnectUnixSocket(path_, GetParam(), Instant::clock::now() + wait);
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/rpc.sock";
};

TEST_P(UnixSocketTest, WaitsForRoomInTheQueueOfTheListener) {
  FullListener listener(path_, GetParam());
  absl::StatusOr<UniqueFd> connected;
  {
    const Blocked client([&] { connected = Connect(kNeverReached); });
    EXPECT_TRUE(client.AwaitSleep());
    listener.Drain();
  }
  EXPECT_TRUE(connected.ok()) << connected.status();
}

TEST_P(UnixSocketTest, AQueueThatStaysFullIsADeadlineExceeded) {
  const FullListener listener(path_, GetParam());
  const absl::Status status = Connect(kSoon).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsTransportFailure(status)) << status;
}

TEST_P(UnixSocketTest, NobodyListeningIsUnavailableAtOnce) {
  EXPECT_EQ(Connect(kNeverReached).status().code(), absl::StatusCode::kUnavailable) << "no file";
  std::optional<FullListener>(std::in_place, path_, GetParam()).reset();
  const absl::Status status = Connect(kNeverReached).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << "a file that a daemon left";
  EXPECT_TRUE(IsTransportFailure(status)) << status;
}

INSTANTIATE_TEST_SUITE_P(Types, UnixSocketTest, testing::Values(SOCK_STREAM, SOCK_SEQPACKET));

class ClientAtAFullQueue : public testing::Test {
 protected:
  absl::Status Connect(std::chrono::milliseconds deadline) {
    return Client::Connect({.socket_dir = directory_.path(), .call_deadline = deadline}).status();
  }

  TemporaryDirectory directory_;
  std::optional<FullListener> listener_{std::in_place, directory_.path() + "/rpc.sock", SOCK_STREAM};
};

TEST_F(ClientAtAFullQueue, ConnectsWhenThereIsRoom) {
  absl::Status status;
  std::array<char, 3> begin = {};
  {
    const Blocked client([&] { status = Connect(kNeverReached); });
    EXPECT_TRUE(client.AwaitSleep());
    listener_->Drain();
    const UniqueFd connection = listener_->Accept();
    EXPECT_EQ(recv(connection.get(), begin.data(), begin.size(), MSG_WAITALL), 3);
    listener_.reset();
  }
  EXPECT_EQ(std::string(begin.data(), begin.size()), "PRI") << "the preface of HTTP/2";
  // The listener hung up, and is not there for another attempt.
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsTransportFailure(status)) << status;
}

TEST_F(ClientAtAFullQueue, FailsAfterItsDeadline) {
  EXPECT_EQ(Connect(kSoon).code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace rnicd::inline client
