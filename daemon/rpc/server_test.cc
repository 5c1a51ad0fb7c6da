#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// --- calls ---

TEST_F(ServerTest, AUnaryCallHasHeadersAMessageAndTrailers) {
  TestClient client(Connect());
  for (const std::string& message : {std::string(), std::string("hello"), std::string(4U << 20U, 'x')}) {
    const Response response = client.Result("/echo", message);
    EXPECT_EQ(response.Field(":status"), "200");
    EXPECT_EQ(response.Field("content-type"), "application/grpc");
    EXPECT_EQ(response.Field("grpc-status"), "0");
    EXPECT_EQ(response.header_blocks, 2);
    EXPECT_EQ(response.Messages(), std::vector{message});
  }
}

// HTTP would refuse the path of a socket there, and bytes that are no text anywhere.
TEST_F(ServerTest, WhatACallDoesNotNeedMayBeAnything) {
  TestClient client(Connect());
  for (const TestClient::Fields& fields :
       {TestClient::Fields{{":authority", "/run/rnicd/rpc.sock"}}, TestClient::Fields{{":scheme", "unix"}},
        TestClient::Fields{{"Name", "\x01\xff"}, {"name", " value "}}, TestClient::Fields{{"content-length", "1"}}}) {
    EXPECT_THAT(client.Result("/echo", "message", fields).Messages(), ElementsAre("message"));
  }
}

TEST_F(ServerTest, TrailersOfARequestMeanNothing) {
  TestClient client(Connect());
  const int32_t stream_id = client.Open("/echo");
  client.Send(stream_id, PrefixOf(4) + "text", false);
  ASSERT_TRUE(client.Until([&] { return client.HasSent(stream_id); }));
  const std::string path = std::string("\0\5:path\5/fail", 13);
  ASSERT_TRUE(
      client.SendRaw(RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, static_cast<uint32_t>(stream_id), path) +
                     RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                              static_cast<uint32_t>(stream_id), path)));
  // The library does not know that the request has ended.
  ASSERT_TRUE(client.Until([&] { return client.Of(stream_id).Field("grpc-status") == "0"; }));
  EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre("text"));
}

TEST_F(ServerTest, AFailureIsTrailersOnly) {
  TestClient client(Connect());
  const Response response = client.Result("/fail", "né 100%");
  EXPECT_EQ(response.header_blocks, 1);
  EXPECT_EQ(response.Field(":status"), "200");
  EXPECT_EQ(response.Field("content-type"), "application/grpc");
  EXPECT_EQ(response.Field("grpc-status"), "5");
  EXPECT_EQ(response.Field("grpc-message"), "n%c3%a9 100%25");
  EXPECT_EQ(response.Field("grpc-status-details-bin"), "ZGV0YWlscw");
  EXPECT_EQ(response.data, "");
}

TEST_F(ServerTest, AStreamHasItsMessagesInOrder) {
  TestClient client(Connect());
  const Response response = client.Result("/count", "100");
  ASSERT_EQ(response.Messages().size(), 100u);
  EXPECT_EQ(response.Messages().front(), "100");
  EXPECT_EQ(response.Messages().back(), "1");
  EXPECT_EQ(response.Field("grpc-status"), "0");
}

TEST_F(ServerTest, AStreamMayEndWithoutAMessage) {
  TestClient client(Connect());
  for (const char* path : {"/nothing", "/count"}) {
    const Response response = client.Result(path, "0");
    EXPECT_EQ(response.data, "") << path;
    EXPECT_EQ(response.Field("grpc-status"), "0") << path;
  }
}

TEST_F(ServerTest, AStreamMayPause) {
  TestClient client(Connect());
  const int32_t stream_id = client.Call("/stream");
  const auto call = handler_->TakeHeld(client, 1).front();
  EXPECT_TRUE(client.Until([&] { return client.Of(stream_id).header_blocks == 1; })) << "confirmed before a message";
  for (const char* message : {"one", "two"}) {
    call->Write(message);
    EXPECT_TRUE(client.Until(
        [&] { return !client.Of(stream_id).Messages().empty() && client.Of(stream_id).Messages().back() == message; }));
    ExpectEchoes(client);
  }
  call->Finish({.code = 9, .message = "enough"});
  EXPECT_TRUE(client.UntilClosed(stream_id));
  EXPECT_EQ(client.Of(stream_id).Field("grpc-status"), "9");
  EXPECT_EQ(client.Of(stream_id).header_blocks, 2);
}

TEST_F(ServerTest, AHandlerNeedNotAskWhetherItsMessageIsOnItsWay) {
  TestClient client(Connect());
  EXPECT_THAT(client.Result("/write").Messages(), ElementsAre("one"));
}

TEST_F(ServerTest, AThousandCallsAtATimeAreServed) {
  TestClient client(Connect());
  std::vector<int32_t> streams;
  for (int count = 0; count < 1000; ++count) {
    streams.push_back(client.Call("/echo", std::to_string(count)));
  }
  for (size_t index = 0; index < streams.size(); ++index) {
    ASSERT_TRUE(client.UntilClosed(streams[index]));
    ASSERT_THAT(client.Of(streams[index]).Messages(), ElementsAre(std::to_string(index)));
  }
}

TEST_F(ServerTest, ThreadsMayAnswerAllAtATime) {
  TestClient client(Connect());
  std::vector<int32_t> streams;
  for (int count = 0; count < 100; ++count) {
    streams.push_back(client.Call("/hold"));
  }
  const auto calls = handler_->TakeHeld(client, streams.size());
  std::vector<std::thread> threads;
  for (size_t part = 0; part < 4; ++part) {
    threads.emplace_back([&calls, part] {
      for (size_t index = part; index < calls.size(); index += 2) {  // Each call by two threads.
        calls[index]->Finish({}, "done");
      }
    });
  }
  for (const int32_t stream_id : streams) {
    ASSERT_TRUE(client.UntilClosed(stream_id));
    EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre("done"));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// --- cancelling and deadlines ---

// Answers calls in their order, and keeps it. Holds the loop's thread inside /wait.
class OrderHandler final {
 public:
  void OnCall(const std::shared_ptr<ServerCall>& call) {
    if (call->path() == "/wait") {
      waiting_.Set();
      go_on_.Wait();
    }
    order_.push_back(call->path());
    call->Finish({}, "");
  }

  bool IsWaiting() { return waiting_.Wait(); }
  void GoOn() { go_on_.Set(); }
  // Once no call runs.
  const std::vector<std::string>& order() const { return order_; }

 private:
  Signal waiting_;
  Signal go_on_;
  std::vector<std::string> order_;
};

TEST_F(ServerTest, LargeMessagesLeaveOthersATurn) {
  constexpr size_t kBytes = 40'000;
  const auto handler = std::make_shared<OrderHandler>();
  TestClient first(Connect(CallsTo(handler)));
  TestClient second(Connect(CallsTo(handler)));
  TestClient third(Connect(CallsTo(handler)));
  std::vector<int32_t> large;
  for (int count = 0; count < 4; ++count) {
    large.push_back(first.Open("/large"));
    first.Send(large.back(), PrefixOf(kBytes) + std::string(kBytes - 1, 'x'), false);
    ASSERT_TRUE(first.Until([&] { return first.HasSent(large.back()); }));
  }
  first.Result("/small");
  third.Call("/wait");
  ASSERT_TRUE(third.Flush() && handler->IsWaiting());
  // All four are whole in one turn, and another client has one small call.
  for (const int32_t stream_id : large) {
    first.Send(stream_id, "x");
  }
  ASSERT_TRUE(first.Flush());
  const int32_t small = second.Call("/small");
  ASSERT_TRUE(second.Flush());
  handler->GoOn();
  ASSERT_TRUE(second.UntilClosed(small));
  for (const int32_t stream_id : large) {
    ASSERT_TRUE(first.UntilClosed(stream_id));
  }
  EXPECT_EQ(handler->order().back(), "/large");
}

TEST_F(ServerTest, ACallThatIsCancelledBeforeItIsWholeNeverBegins) {
  TestClient client(Connect());
  const int32_t stream_id = client.Open("/echo");
  client.Send(stream_id, PrefixOf(10) + "half", false);
  ExpectEchoes(client);
  client.Cancel(stream_id);
  ExpectEchoes(client);
  EXPECT_EQ(handler_->begun(), 2u);
  EXPECT_TRUE(Eventually([&] { return server_->used_bytes() == 0; }));
}

TEST_F(ServerTest, ACancelIsToldToTheCall) {
  TestClient client(Connect());
  for (const char* path : {"/hold", "/stream"}) {
    const int32_t stream_id = client.Call(path);
    const auto call = handler_->TakeHeld(client, 1).front();
    client.Cancel(stream_id);
    ExpectEchoes(client);
    call->Write("nobody listens");
    call->Finish({}, "nor now");
  }
  EXPECT_EQ(handler_->cancelled(), 2);
}

TEST_F(ServerTimeTest, ADeadlineEndsACallAndIsToldToIt) {
  TestClient client(Connect());
  const int32_t stream_id = client.Call("/hold", "", {{"grpc-timeout", "1S"}});
  const auto calls = handler_->TakeHeld(client, 1);
  Pass(milliseconds(999));
  EXPECT_EQ(handler_->cancelled(), 0);
  Pass(milliseconds(1));
  EXPECT_EQ(handler_->cancelled(), 1);
  EXPECT_TRUE(client.UntilClosed(stream_id));
  EXPECT_EQ(client.Of(stream_id).Field("grpc-status"), "4");
}

TEST_F(ServerTimeTest, ADeadlineEndsAHalfSentCallAndAStream) {
  TestClient client(Connect());
  const int32_t half = client.Open("/hold", {{"grpc-timeout", "10m"}});
  client.Send(half, PrefixOf(10) + "half", false);
  const int32_t stream = client.Call("/stream", "", {{"grpc-timeout", "1S"}});
  const auto calls = handler_->TakeHeld(client, 1);
  Pass(milliseconds(10));
  Pass(Limits{}.rest_timeout);
  EXPECT_TRUE(client.UntilClosed(half));
  EXPECT_EQ(client.Of(half).Field("grpc-status"), "4");
  Pass(milliseconds(1000));
  EXPECT_EQ(handler_->cancelled(), 1);
  EXPECT_TRUE(client.UntilClosed(stream));
  EXPECT_EQ(client.Of(stream).header_blocks, 2);
  EXPECT_EQ(client.Of(stream).Field("grpc-status"), "4");
}

TEST_F(ServerTest, ALateResponseIsNotEarly) {
  TestClient client(Connect());
  const Instant begin = std::chrono::steady_clock::now();
  EXPECT_THAT(client.Result("/later", "20").Messages(), ElementsAre("20"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
}

TEST_F(ServerTimeTest, TheFirstResponseDueIsTheFirstSent) {
  TestClient client(Connect());
  const int32_t second = client.Call("/later", "1000");
  const int32_t first = client.Call("/later", "1");
  ASSERT_TRUE(client.Until([&] { return handler_->waiting() == 2; }));
  Pass(milliseconds(1));
  ASSERT_TRUE(client.UntilClosed(first));
  ExpectEchoes(client);
  EXPECT_FALSE(client.Of(second).closed);
  Pass(milliseconds(999));
  EXPECT_TRUE(client.UntilClosed(second));
}

TEST_F(ServerTest, ACancelledCallDoesNothingLater) {
  TestClient client(Connect());
  const int32_t stream_id = client.Call("/later", "3600000");
  ASSERT_TRUE(client.Until([&] { return handler_->waiting() == 1; }));
  client.Cancel(stream_id);
  EXPECT_TRUE(client.Until([&] { return handler_->waiting() == 0; }));
}

TEST_F(ServerTest, ACallThatEndsInTimeIsNotCancelled) {
  TestClient client(Connect());
  EXPECT_EQ(client.Result("/echo", "", {{"grpc-timeout", "1H"}}).Field("grpc-status"), "0");
  EXPECT_EQ(client.Result("/echo", "", {{"grpc-timeout", "99999999H"}}).Field("grpc-status"), "0");
  EXPECT_EQ(handler_->cancelled(), 0);
}

// As a client does whose calls have one deadline.
TEST_F(ServerTest, AClientMayCancelAllItsCallsAtOnceAgainAndAgain) {
  TestClient client(Connect());
  for (int round = 0; round < 5; ++round) {
    std::vector<int32_t> streams;
    for (uint32_t count = 0; count < Limits{}.calls_max; ++count) {
      streams.push_back(client.Call("/hold"));
    }
    handler_->TakeHeld(client, streams.size());
    for (const int32_t stream_id : streams) {
      client.Cancel(stream_id);
    }
    ASSERT_TRUE(client.Until([&] { return handler_->cancelled() == (round + 1) * static_cast<int>(streams.size()); }));
  }
  ExpectEchoes(client);
}

// --- what is no call ---

TEST_F(ServerTest, WhatIsNotGrpcHasAnHttpStatus) {
  TestClient client(Connect());
  const std::array<std::array<std::string, 3>, 5> cases = {{{"GET", "application/grpc", "405"},
                                                            {"PUT", "application/grpc", "405"},
                                                            {"POST", "application/json", "415"},
                                                            {"POST", "application/grpc-web", "415"},
                                                            {"POST", "", "415"}}};
  for (const auto& [method, content_type, http_status] : cases) {
    const int32_t stream_id = client.Open("/echo", {}, method, content_type);
    ASSERT_TRUE(client.UntilClosed(stream_id));
    EXPECT_EQ(client.Of(stream_id).Field(":status"), http_status) << method << " " << content_type;
    EXPECT_TRUE(client.Of(stream_id).reset) << "the rest of the request is not waited for";
    EXPECT_EQ(client.Of(stream_id).error_code, uint32_t{NGHTTP2_NO_ERROR});
  }
  EXPECT_EQ(handler_->begun(), 0u);
  ExpectEchoes(client);
}

TEST_F(ServerTest, AMessageThatIsTooLargeIsRefusedBeforeItArrives) {
  TestClient client(Connect());
  for (const uint32_t size : {Limits{}.message_bytes_max + 1, UINT32_MAX}) {
    const int32_t stream_id = client.Open("/echo");
    client.Send(stream_id, PrefixOf(size), false);
    ASSERT_TRUE(client.UntilClosed(stream_id));
    EXPECT_EQ(client.Of(stream_id).Field("grpc-status"), CodeOf(Refusal::kMessageTooLarge));
    EXPECT_EQ(client.Of(stream_id).Field("grpc-message"), std::to_string(size));
  }
  ExpectEchoes(client);
}

TEST_F(ServerTest, HeadersAboveTheirLimitsResetTheirStreamAlone) {
  TestClient client(Connect());
  TestClient::Fields many;
  for (uint32_t count = 0; count < Limits{}.header_fields_max; ++count) {
    many.emplace_back("name", "value");
  }
  const TestClient::Fields large = {{"name", std::string(Limits{}.header_bytes_max, 'x')}};
  for (const TestClient::Fields& fields : {many, large}) {
    EXPECT_EQ(client.Result("/echo", "", fields).error_code, uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  }
  EXPECT_EQ(handler_->begun(), 0u);
  ExpectEchoes(client);
}

TEST_F(ServerTest, WhatIsNoHttp2IsHungUpOn) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'), kPreface + std::string(64, '\xff')}) {
    const UniqueSocket socket = Connect();
    SendSocket(socket.get(), bytes);
    EXPECT_TRUE(HangsUp(socket));
  }
}

}  // namespace
}  // namespace rnicd::rpc
