#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr char kEmptySettings[] = "\0\0\0\x04\0\0\0\0\0";

class SmallServerTest : public ServerTest {
 protected:
  SmallServerTest() : ServerTest({.calls_max = 4, .idle_frames_max = 20, .connection_bytes = 100'000}) {}
};

TEST_F(SmallServerTest, ACallAboveTheLimitIsRefusedForAnotherTry) {
  TestClient client(Connect());
  std::vector<int32_t> streams;
  for (int count = 0; count < 4; ++count) {
    streams.push_back(client.Call("/hold"));
  }
  const int32_t fifth = client.Call("/echo");
  ASSERT_TRUE(client.Flush()) << "before it knows the server's settings";
  ASSERT_TRUE(client.UntilClosed(fifth));
  const auto calls = handler_->TakeHeld(client, 4);
  EXPECT_EQ(client.Of(fifth).error_code, uint32_t{NGHTTP2_REFUSED_STREAM});
  calls.front()->Finish({});
  ASSERT_TRUE(client.UntilClosed(streams.front()));
  ExpectEchoes(client);
}

TEST_F(SmallServerTest, AMessageOverTheBudgetIsRefusedAndTheBudgetReturns) {
  TestClient client(Connect());
  EXPECT_EQ(client.Result("/echo", std::string(100'000, 'x')).Field("grpc-status"), CodeOf(Refusal::kOverBudget));
  const int32_t held = client.Call("/hold", std::string(60'000, 'x'));
  const auto calls = handler_->TakeHeld(client, 1);
  EXPECT_EQ(client.Result("/echo", std::string(60'000, 'x')).Field("grpc-status"), CodeOf(Refusal::kOverBudget));
  // Another connection has a budget of its own.
  TestClient other(Connect());
  EXPECT_EQ(other.Result("/echo", std::string(60'000, 'x')).Field("grpc-status"), "0");
  client.Cancel(held);
  ExpectEchoes(client);
  EXPECT_GT(server_->used_bytes(), 60'000u) << "the handler still has it";
}

TEST_F(SmallServerTest, AHandlerMayChargeWhatItMakesOfARequest) {
  TestClient client(Connect());
  client.Call("/hold");
  {
    const auto call = handler_->TakeHeld(client, 1).front();
    EXPECT_TRUE(call->Charge(50'000));
    EXPECT_FALSE(call->Charge(50'000));
    call->Finish({});
  }
  EXPECT_TRUE(Eventually([&] { return server_->used_bytes() == 0; }));
}

// Longest time until the server sees that something takes too long.
constexpr milliseconds kCheckPeriod{1000};

TEST_F(ServerTimeTest, HalfSentMessagesTimeOut) {
  TestClient client(Connect());
  std::vector<int32_t> streams = {client.Open("/echo")};
  for (const char* part : {"", "half"}) {
    streams.push_back(client.Open("/echo"));
    client.Send(streams.back(), PrefixOf(30'000) + part, false);
  }
  ExpectEchoes(client);
  Pass(Limits{}.request_timeout);
  ExpectEchoes(client);
  for (const int32_t stream_id : streams) {
    EXPECT_FALSE(client.Of(stream_id).closed);
  }
  Pass(kCheckPeriod);
  Pass(Limits{}.rest_timeout);
  for (const int32_t stream_id : streams) {
    ASSERT_TRUE(client.UntilClosed(stream_id));
    EXPECT_EQ(client.Of(stream_id).Field("grpc-status"), CodeOf(Refusal::kIncomplete));
  }
  ExpectEchoes(client);
}

class RestTimeoutTest : public ServerTest {
 protected:
  RestTimeoutTest() : ServerTest({.rest_timeout = kTimeout}) {}
};

// curl drops an answer that a reset follows at once.
TEST_F(RestTimeoutTest, ARequestMayEndAfterItsAnswer) {
  TestClient client(Connect());
  const int32_t stream_id = client.Open("/echo", {}, "POST", "application/json");
  ASSERT_TRUE(client.Until([&] { return client.Of(stream_id).Field(":status") == "415"; }));
  client.Send(stream_id, "{}");
  ASSERT_TRUE(client.UntilClosed(stream_id));
  EXPECT_FALSE(client.Of(stream_id).reset);
  ExpectEchoes(client);
}

TEST_F(ServerTimeTest, AClientThatSaysNothingIsHungUpOn) {
  const UniqueSocket socket = Connect();
  Pass(Limits{}.greeting_timeout);
  EXPECT_EQ(server_->connections(), 1u);
  Pass(kCheckPeriod);
  EXPECT_TRUE(HangsUp(socket));
}

TEST_F(ServerTimeTest, AClientThatNeverAcknowledgesTheSettingsIsHungUpOn) {
  const UniqueSocket socket = Connect();
  const std::string bytes = kPreface + std::string(kEmptySettings, 9);
  ASSERT_EQ(SendSocket(socket.get(), bytes), static_cast<int64_t>(bytes.size()));
  Pass(Limits{}.greeting_timeout);
  EXPECT_EQ(server_->connections(), 1u);
  Pass(kCheckPeriod);
  EXPECT_TRUE(HangsUp(socket));
}

TEST_F(ServerTimeTest, ACallThatRunsIsNotLate) {
  TestClient client(Connect());
  ExpectEchoes(client);
  const int32_t stream_id = client.Call("/hold");
  const auto calls = handler_->TakeHeld(client, 1);
  ASSERT_FALSE(calls.empty());
  Pass(3 * Limits{}.request_timeout);
  Pass(kCheckPeriod);
  calls.front()->Finish({}, "late");
  ASSERT_TRUE(client.UntilClosed(stream_id));
  EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre("late"));
}

TEST_F(SmallServerTest, AClientThatOnlyPingsIsSentAway) {
  TestClient client(Connect());
  ExpectEchoes(client);
  for (int count = 0; count < 21; ++count) {
    nghttp2_submit_ping(client.session(), NGHTTP2_FLAG_NONE, nullptr);
  }
  EXPECT_TRUE(client.UntilHungUp());
  ASSERT_TRUE(client.goaway().has_value());
  EXPECT_EQ(*client.goaway(), (std::pair<uint32_t, std::string>(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings")));
}

// Each of the updates lets a byte of the response pass.
TEST_F(SmallServerTest, AClientWithATinyWindowGetsItsResponse) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1}});
  EXPECT_THAT(client.Result("/echo", std::string(200, 'x')).Messages(), ElementsAre(std::string(200, 'x')));
}

TEST_F(SmallServerTest, AClientWhoseCallsAreAllRefusedIsSentAway) {
  TestClient client(Connect());
  for (int count = 0; count < 4 + 21; ++count) {
    client.Call("/hold");
  }
  client.Flush();  // Before it knows the server's settings.
  EXPECT_TRUE(client.UntilHungUp());
}

TEST_F(ServerTimeTest, AClientThatNeverReadsItsResponseIsHungUpOn) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 8 << 20}});
  nghttp2_session_set_local_window_size(client.session(), NGHTTP2_FLAG_NONE, 0, 8 << 20);
  ExpectEchoes(client);
  client.Call("/large", "4000000");
  ASSERT_TRUE(client.Flush());
  ASSERT_TRUE(Eventually([&] { return handler_->begun() == 2; }));
  Pass(kCheckPeriod);
  Pass(Limits{}.unread_timeout);
  EXPECT_EQ(server_->connections(), 1u);
  Pass(kCheckPeriod);
  EXPECT_EQ(server_->connections(), 0u);
}

// Its pings are answered, which is no progress of the response.
TEST_F(ServerTimeTest, AClientThatOpensNoWindowIsHungUpOn) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
  client.Call("/echo", "never read");
  ASSERT_TRUE(client.Flush());
  ASSERT_TRUE(Eventually([&] { return handler_->begun() == 1; })) << "a ping may overtake the call";
  const auto pass_after_a_ping = [&](milliseconds time) {
    const int pings = client.pings();
    nghttp2_submit_ping(client.session(), NGHTTP2_FLAG_NONE, nullptr);
    ASSERT_TRUE(client.Until([&] { return client.pings() > pings; }));
    Pass(time);
  };
  pass_after_a_ping(kCheckPeriod);
  for (int count = 0; count < 3; ++count) {
    pass_after_a_ping(Limits{}.unread_timeout / 3);
  }
  EXPECT_EQ(server_->connections(), 1u);
  pass_after_a_ping(kCheckPeriod);
  EXPECT_EQ(server_->connections(), 0u);
}

// Each part within the timeout, all of them in more than it.
TEST_F(ServerTimeTest, AClientThatReadsSlowlyIsServed) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000}});
  ExpectEchoes(client);
  const int32_t stream_id = client.Call("/large", "14000");
  while (!client.Of(stream_id).closed) {
    const size_t read = client.Of(stream_id).data.size();
    ASSERT_TRUE(client.Until([&] { return client.Of(stream_id).closed || client.Of(stream_id).data.size() > read; }));
    Pass(Limits{}.unread_timeout * 4 / 5);
  }
  EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre(std::string(14000, 'x')));
}

class UnreadTest : public ServerTest {
 protected:
  UnreadTest() : ServerTest({.unread_bytes_max = 65536, .connection_bytes = 1 << 20}) {}
};

// Its requests stay in the socket, where nobody pays for them, instead of being refused.
TEST_F(UnreadTest, AClientThatDoesNotReadIsNotReadFromUntilItReads) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}});
  nghttp2_session_set_local_window_size(client.session(), NGHTTP2_FLAG_NONE, 0, 64 << 20);
  ExpectEchoes(client);
  // Headers are not subject to flow control.
  const TestClient::Fields large_header = {{"name", std::string(8192, 'x')}};
  std::vector<int32_t> streams;
  while (streams.size() < 200 && client.Flush(milliseconds(50))) {
    streams.push_back(client.Call("/large", "50000", large_header));
  }
  EXPECT_LT(streams.size(), 200u);
  EXPECT_LE(server_->used_bytes(), uint64_t{1} << 20U);
  for (const int32_t stream_id : streams) {
    ASSERT_TRUE(client.UntilClosed(stream_id));
    ASSERT_EQ(client.Of(stream_id).Field("grpc-status"), "0");
  }
}

TEST_F(UnreadTest, WhatACancelledCallDidNotReadWaitsNoLonger) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100}});
  for (int count = 0; count < 2; ++count) {
    const int32_t stream_id = client.Call("/large", "50000");
    ASSERT_TRUE(client.Until([&] { return client.Of(stream_id).data.size() == 100; }));
    client.Cancel(stream_id);
  }
  ExpectEchoes(client);
}

}  // namespace
}  // namespace rnicd::rpc
