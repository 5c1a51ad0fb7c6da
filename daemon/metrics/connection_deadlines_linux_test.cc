#include "daemon/metrics/connection_deadlines.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>

#include "base/unique_fd.h"

namespace rnicd::metrics {
namespace {

using std::chrono::milliseconds;

constexpr ConnectionLimits kLimits = {.request_time = std::chrono::hours(1),
                                      .response_time = std::chrono::hours(1),
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
  bool IsCutOffWithin(milliseconds time) const {
    pollfd state = {.fd = client_.get(), .events = POLLRDHUP, .revents = 0};
    return poll(&state, 1, static_cast<int>(time.count())) == 1;
  }
  bool IsCutOff() const { return IsCutOffWithin(milliseconds(0)); }

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
  limits.request_time = milliseconds(50);
  ConnectionDeadlines deadlines(limits);
  const Connection connection;
  deadlines.Add(connection.fd());
  EXPECT_TRUE(connection.IsCutOffWithin(std::chrono::minutes(1)));
}

TEST(ConnectionDeadlines, AResponseThatTakesTooLongIsCutOff) {
  ConnectionLimits limits = kLimits;
  limits.response_time = milliseconds(50);
  ConnectionDeadlines deadlines(limits);
  const Connection connection;
  Respond(deadlines, connection, 1);
  EXPECT_TRUE(connection.IsCutOffWithin(std::chrono::minutes(1)));
}

TEST(ConnectionDeadlines, TheServersOwnWorkHasTime) {
  ConnectionLimits limits = kLimits;
  limits.request_time = milliseconds(1000);
  ConnectionDeadlines deadlines(limits);
  const Connection connection;
  deadlines.Add(connection.fd());
  deadlines.FinishRequest(connection.fd());
  EXPECT_FALSE(connection.IsCutOffWithin(milliseconds(1500)));
}

TEST(ConnectionDeadlines, ARemovedDescriptorIsNotTouched) {
  ConnectionLimits limits = kLimits;
  limits.request_time = milliseconds(1000);
  ConnectionDeadlines deadlines(limits);
  const Connection connection;
  deadlines.Add(connection.fd());
  deadlines.Remove(connection.fd());
  EXPECT_FALSE(connection.IsCutOffWithin(milliseconds(1500)));
}

TEST(ConnectionDeadlines, TooManyRequestsCutOffTheOldest) {
  ConnectionDeadlines deadlines(kLimits);
  const std::deque<Connection> connections(5);
  for (const Connection& connection : connections) {
    deadlines.Add(connection.fd());
  }
  EXPECT_TRUE(connections[0].IsCutOff());
  EXPECT_TRUE(connections[1].IsCutOff());
  EXPECT_FALSE(connections[2].IsCutOff());
  EXPECT_FALSE(connections[4].IsCutOff());
}

TEST(ConnectionDeadlines, TooManyResponsesCutOffTheOldest) {
  ConnectionDeadlines deadlines(kLimits);
  const std::deque<Connection> connections(3);
  for (const Connection& connection : connections) {
    Respond(deadlines, connection, 1);
  }
  EXPECT_TRUE(connections[0].IsCutOff());
  EXPECT_FALSE(connections[1].IsCutOff());
  EXPECT_FALSE(connections[2].IsCutOff());
}

TEST(ConnectionDeadlines, TooManyBytesCutOffTheOldestResponse) {
  ConnectionDeadlines deadlines(kLimits);
  const Connection first;
  const Connection second;
  Respond(deadlines, first, 60);
  Respond(deadlines, second, 41);
  EXPECT_TRUE(first.IsCutOff());
  EXPECT_FALSE(second.IsCutOff());
}

TEST(ConnectionDeadlines, AResponseAboveTheLimitIsSentAlone) {
  ConnectionDeadlines deadlines(kLimits);
  const Connection connection;
  Respond(deadlines, connection, 101);
  EXPECT_FALSE(connection.IsCutOff());
}

TEST(ConnectionDeadlines, RequestsCutOffNoResponseAndResponsesNoRequest) {
  ConnectionDeadlines deadlines(kLimits);
  const Connection waiting;
  const std::deque<Connection> responses(3);
  const std::deque<Connection> requests(3);
  deadlines.Add(waiting.fd());
  for (const Connection& connection : responses) {
    Respond(deadlines, connection, 1);
  }
  EXPECT_FALSE(waiting.IsCutOff());
  for (const Connection& connection : requests) {
    deadlines.Add(connection.fd());
  }
  EXPECT_TRUE(waiting.IsCutOff());
  EXPECT_FALSE(responses[2].IsCutOff());
}

}  // namespace
}  // namespace rnicd::metrics
