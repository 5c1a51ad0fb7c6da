#include "daemon/metrics/connection_deadlines.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>

#include "base/files/unique_fd.h"
#include "base/manual_clock_fake.h"
#include "base/waiting_fixture.h"

namespace rnicd::metrics {
namespace {

constexpr ConnectionLimits kLimits = {.request_time = std::chrono::seconds(2),
                                      .response_time = std::chrono::seconds(5),
                                      .requests = 3,
                                      .responses = 2,
                                      .response_bytes = 100};

// The server's end of a connection, and its client's.
class Connection {
 public:
  Connection() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server_.Reset(ends[0]);
    client_.Reset(ends[1]);
  }

  int fd() const { return server_.get(); }
  bool IsCutOff(std::chrono::milliseconds limit = {}) const {
    pollfd state = {.fd = client_.get(), .events = POLLRDHUP, .revents = 0};
    return poll(&state, 1, static_cast<int>(limit.count())) == 1;
  }

 private:
  UniqueFd server_;
  UniqueFd client_;
};

void Respond(ConnectionDeadlines& deadlines, const Connection& connection, size_t bytes) {
  deadlines.Add(connection.fd());
  deadlines.FinishRequest(connection.fd());
  deadlines.BeginResponse(connection.fd(), bytes);
}

TEST(ConnectionDeadlines, ARequestThatTakesTooLongIsCutOff) {
  ConnectionLimits limits = kLimits;
  limits.request_time = std::chrono::milliseconds(1);
  const SteadyClock clock;
  ConnectionDeadlines deadlines(limits, clock);
  const Connection connection;
  deadlines.Add(connection.fd());
  EXPECT_TRUE(connection.IsCutOff(kTimeout));
}

class ConnectionDeadlinesTest : public testing::Test {
 protected:
  // Lets time pass until the thread has cut off a connection whose request does not come.
  void PassARequestsTime() {
    const Connection late;
    deadlines_.Add(late.fd());
    clock_.Advance(kLimits.request_time);
    EXPECT_TRUE(late.IsCutOff(kTimeout));
    deadlines_.Remove(late.fd());
  }

  ManualClock clock_;
  ConnectionDeadlines deadlines_{kLimits, clock_};
};

TEST_F(ConnectionDeadlinesTest, AResponseHasItsOwnTime) {
  const Connection connection;
  Respond(deadlines_, connection, 1);
  PassARequestsTime();
  EXPECT_FALSE(connection.IsCutOff());
  clock_.Advance(kLimits.response_time - kLimits.request_time);
  EXPECT_TRUE(connection.IsCutOff(kTimeout));
}

TEST_F(ConnectionDeadlinesTest, TheServersOwnWorkHasTime) {
  const Connection connection;
  deadlines_.Add(connection.fd());
  deadlines_.FinishRequest(connection.fd());
  PassARequestsTime();
  EXPECT_FALSE(connection.IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, ARemovedDescriptorIsNotTouched) {
  const Connection connection;
  deadlines_.Add(connection.fd());
  deadlines_.Remove(connection.fd());
  PassARequestsTime();
  EXPECT_FALSE(connection.IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, TooManyRequestsCutOffTheOldest) {
  const std::deque<Connection> connections(5);
  for (const Connection& connection : connections) {
    deadlines_.Add(connection.fd());
  }
  EXPECT_TRUE(connections[0].IsCutOff());
  EXPECT_TRUE(connections[1].IsCutOff());
  EXPECT_FALSE(connections[2].IsCutOff());
  EXPECT_FALSE(connections[4].IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, TooManyResponsesCutOffTheOldest) {
  const std::deque<Connection> connections(3);
  for (const Connection& connection : connections) {
    Respond(deadlines_, connection, 1);
  }
  EXPECT_TRUE(connections[0].IsCutOff());
  EXPECT_FALSE(connections[1].IsCutOff());
  EXPECT_FALSE(connections[2].IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, TooManyBytesCutOffTheOldestResponse) {
  const Connection first;
  const Connection second;
  Respond(deadlines_, first, 60);
  Respond(deadlines_, second, 41);
  EXPECT_TRUE(first.IsCutOff());
  EXPECT_FALSE(second.IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, AResponseAboveTheLimitIsSentAlone) {
  const Connection connection;
  Respond(deadlines_, connection, 101);
  EXPECT_FALSE(connection.IsCutOff());
}

TEST_F(ConnectionDeadlinesTest, RequestsCutOffNoResponseAndResponsesNoRequest) {
  const Connection waiting;
  const std::deque<Connection> responses(3);
  const std::deque<Connection> requests(3);
  deadlines_.Add(waiting.fd());
  for (const Connection& connection : responses) {
    Respond(deadlines_, connection, 1);
  }
  EXPECT_FALSE(waiting.IsCutOff());
  for (const Connection& connection : requests) {
    deadlines_.Add(connection.fd());
  }
  EXPECT_TRUE(waiting.IsCutOff());
  EXPECT_FALSE(responses[2].IsCutOff());
}

}  // namespace
}  // namespace rnicd::metrics
