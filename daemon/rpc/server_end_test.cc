#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class PatientTest : public ServerTest {
 protected:
  PatientTest() : ServerTest({.last_words = std::chrono::hours(1)}) {}
};

class HastyTest : public ServerTest {
 protected:
  HastyTest() : ServerTest({.last_words = milliseconds(0)}) {}
};

TEST_F(PatientTest, CloseLetsRunningCallsEndAndTakesNoNewOnes) {
  TestClient client(Connect());
  const int32_t unary = client.Call("/hold");
  const int32_t stream = client.Call("/stream");
  const auto calls = handler_->TakeHeld(client, 2);
  connection_->Close();
  ASSERT_TRUE(client.Until([&] { return client.goaway().has_value(); }));
  EXPECT_EQ(client.goaway()->first, uint32_t{NGHTTP2_NO_ERROR});
  calls[1]->Write("the cause");
  calls[1]->Finish({});
  calls[0]->Finish({}, "in time");
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_THAT(client.Of(unary).Messages(), ElementsAre("in time"));
  EXPECT_THAT(client.Of(stream).Messages(), ElementsAre("the cause"));
  EXPECT_EQ(client.Of(stream).Field("grpc-status"), "0");
  EXPECT_EQ(handler_->cancelled(), 0);
}

TEST_F(PatientTest, ACallMadeBeforeTheClientKnowsOfTheCloseIsServed) {
  TestClient client(Connect());
  ExpectEchoes(client);
  connection_->Close();
  ASSERT_TRUE(client.HasNews());
  const int32_t stream_id = client.Call("/hold");
  const auto calls = handler_->TakeHeld(client, 1);
  ASSERT_TRUE(client.Until([&] { return client.last_streams().size() == 2; }));
  EXPECT_THAT(client.last_streams(), ElementsAre(INT32_MAX, stream_id));
  calls.front()->Finish({}, "in between");
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre("in between"));
}

TEST_F(PatientTest, CloseSendsLateResponsesAtOnce) {
  TestClient client(Connect());
  const int32_t stream_id = client.Call("/later", "3600000");
  ASSERT_TRUE(client.Until([&] { return handler_->waiting() == 1; }));
  connection_->Close();
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_THAT(client.Of(stream_id).Messages(), ElementsAre("3600000"));
}

TEST_F(PatientTest, CloseOfAnIdleConnectionIsAtOnce) {
  TestClient client(Connect());
  ExpectEchoes(client);
  client.Send(client.Open("/echo"), PrefixOf(10), false);  // Half a request has no response.
  connection_->Close();
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_TRUE(client.goaway().has_value());
  connection_->Close();
}

TEST_F(PatientTest, AnIdleStreamDoesNotDelayClose) {
  TestClient client(Connect());
  const int32_t stream = client.Call("/stream");
  const auto calls = handler_->TakeHeld(client, 1);
  calls.front()->Write("the last words");
  connection_->Close();
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_THAT(client.Of(stream).Messages(), ElementsAre("the last words"));
  EXPECT_TRUE(Eventually([&] { return handler_->cancelled() == 1; }));
}

TEST_F(ServerTimeTest, CallsThatDoNotEndAreCancelledByClose) {
  TestClient client(Connect());
  const int32_t stream_id = client.Call("/hold");
  const auto calls = handler_->TakeHeld(client, 1);
  connection_->Close();
  Pass(Limits{}.last_words - milliseconds(1));
  EXPECT_EQ(handler_->cancelled(), 0);
  Pass(milliseconds(1));
  EXPECT_EQ(handler_->cancelled(), 1);
  EXPECT_TRUE(client.UntilHungUp());
  EXPECT_FALSE(client.Of(stream_id).closed);
  calls.front()->Finish({});
}

TEST_F(ServerTimeTest, AClientThatDoesNotReadDoesNotDelayClose) {
  TestClient client(Connect(), {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 8 << 20}});
  nghttp2_session_set_local_window_size(client.session(), NGHTTP2_FLAG_NONE, 0, 8 << 20);
  ExpectEchoes(client);
  client.Call("/large", "4000000");
  ASSERT_TRUE(client.Flush());
  ASSERT_TRUE(Eventually([&] { return handler_->begun() == 2; }));
  connection_->Close();
  Pass(Limits{}.last_words);
  EXPECT_TRUE(Eventually([&] { return server_->used_bytes() == 0; }));
  EXPECT_TRUE(client.UntilHungUp());
}

TEST_F(ServerTest, AClientThatLeavesCancelsItsCalls) {
  {
    TestClient client(Connect());
    client.Call("/hold");
    client.Call("/stream");
    client.Send(client.Open("/echo"), PrefixOf(1000) + "half", false);
    handler_->TakeHeld(client, 2);
  }
  EXPECT_TRUE(Eventually([&] { return handler_->cancelled() == 2; }));
}

TEST_F(HastyTest, TheDestructorEndsConnectionsAndCallsOutliveIt) {
  std::vector<std::unique_ptr<TestClient>> clients;
  std::vector<std::shared_ptr<ServerCall>> calls;
  for (int count = 0; count < 5; ++count) {
    clients.push_back(std::make_unique<TestClient>(Connect()));
    clients.back()->Call(count % 2 == 0 ? "/hold" : "/stream", std::string(1000, 'x'));
    calls.push_back(handler_->TakeHeld(*clients.back(), 1).front());
  }
  const UniqueSocket silent = Connect();
  server_.reset();
  EXPECT_EQ(handler_->cancelled(), 5);
  for (const auto& client : clients) {
    EXPECT_TRUE(client->UntilHungUp());
    EXPECT_TRUE(client->goaway().has_value());
  }
  EXPECT_EQ(calls.front()->message().size(), 1000u);
  for (const auto& call : calls) {
    call->Write("nobody");
    call->Finish({}, "listens");
  }
  connection_->Close();
}

TEST_F(ServerTest, WhatTheServersThreadsServeIsSharedAmongThem) {
  const std::unique_ptr<Server> server = *Server::Start(3, {}, steady_clock_);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int count = 0; count < 10; ++count) {
    auto [ours, theirs] = MakeSocketPair();
    server->Serve({.socket = std::make_shared<const UniqueSocket>(std::move(ours)), .owner = std::to_string(count)},
                  CallsTo(handler_));
    clients.push_back(std::make_unique<TestClient>(std::move(theirs)));
  }
  for (const auto& client : clients) {
    ExpectEchoes(*client);
  }
}

}  // namespace
}  // namespace rnicd::rpc
