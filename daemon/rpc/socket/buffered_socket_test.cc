#include "daemon/rpc/socket/buffered_socket.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

// More than a socket takes at once.
constexpr size_t kMuch = 16 << 20;

class BufferedSocketTest : public testing::Test {
 protected:
  BufferedSocketTest() {
    auto [ours, theirs] = MakeSocketPair();
    shared_ = std::make_shared<const UniqueSocket>(std::move(ours));
    client_ = std::move(theirs);
    socket_.emplace(*loop_, shared_);
  }
  ~BufferedSocketTest() override { loop_->Stop(); }
  // Bytes that the client has by now.
  size_t Arrived() const {
    static std::array<char, 65536> buffer;
    size_t bytes = 0;
    int64_t size = 0;
    while ((size = ReadSocket(client_.get(), buffer, /*refuses_descriptors=*/true)) > 0) {
      bytes += static_cast<size_t>(size);
    }
    return bytes;
  }

  const SteadyClock clock_;
  const std::shared_ptr<EventLoop> loop_ = *EventLoop::Start(clock_);
  std::shared_ptr<const UniqueSocket> shared_;
  UniqueSocket client_;
  std::optional<BufferedSocket> socket_;
};

TEST_F(BufferedSocketTest, KeepsWhatTheSocketDoesNotTakeAndSendsItLater) {
  EXPECT_TRUE(socket_->Send(std::string(kMuch, 'x')));
  size_t arrived = 0;
  while (socket_->blocked()) {
    ASSERT_TRUE(WaitForSocket(client_.get(), kReadable, kTimeout));
    arrived += Arrived();
    socket_->SendKept();
  }
  EXPECT_FALSE(socket_->failed());
  while (arrived < kMuch) {
    ASSERT_TRUE(WaitForSocket(client_.get(), kReadable, kTimeout));
    arrived += Arrived();
  }
  EXPECT_EQ(arrived, kMuch);
}

TEST_F(BufferedSocketTest, FailsOnceTheClientHasGone) {
  client_ = UniqueSocket();
  // TCP takes some before it knows.
  while (!socket_->failed()) {
    socket_->Send("x");
  }
  EXPECT_FALSE(socket_->blocked()) << "nothing is kept for a client that has gone";
}

TEST_F(BufferedSocketTest, WaitsForTheSocketWhileItKeepsSomething) {
  Signal writable;
  RunOn(*loop_, [&] {
    ASSERT_TRUE(socket_->Open([&](uint32_t events) {
      if ((events & kWritable) != 0) {
        socket_->SendKept();
        socket_->WaitFor(/*reads=*/true);
      }
      if (!socket_->blocked()) {
        writable.Set();
      }
    }));
    socket_->Send(std::string(kMuch, 'x'));
    socket_->WaitFor(/*reads=*/false);
    if (!socket_->blocked()) {
      writable.Set();
    }
  });
  size_t arrived = 0;
  while (arrived < kMuch) {
    ASSERT_TRUE(WaitForSocket(client_.get(), kReadable, kTimeout));
    arrived += Arrived();
  }
  EXPECT_TRUE(writable.Wait());
  RunOn(*loop_, [&] { socket_->Close(); });
}

TEST_F(BufferedSocketTest, CloseEndsItForThoseWhoShareIt) {
  RunOn(*loop_, [&] {
    ASSERT_TRUE(socket_->Open([](uint32_t /*events*/) {}));
    socket_->Close();
  });
  EXPECT_TRUE(HangsUp(client_));
  EXPECT_EQ(shared_.use_count(), 1);
}

}  // namespace
}  // namespace rnicd::rpc
