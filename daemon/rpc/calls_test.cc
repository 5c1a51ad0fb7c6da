// A connection's calls and its HTTP/2 session without a socket, by frames as no library writes them.
#include "daemon/rpc/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

using std::chrono::seconds;

// A header field in HPACK's literal form, without indexing and without Huffman's code.
std::string Literal(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  for (const std::string_view text : {name, value}) {
    field.push_back(static_cast<char>(text.size()));
    field.append(text);
  }
  return field;
}

// The frames of a request without its end.
std::string RequestHead(uint32_t stream_id) {
  return RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream_id,
                  Literal(":method", "POST") + Literal(":path", "/a/B") + Literal("content-type", "application/grpc"));
}
std::string WholeRequest(uint32_t stream_id, std::string_view message) {
  return RequestHead(stream_id) +
         RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream_id, PrefixOf(message.size()).append(message));
}

class CallsTest : public testing::Test {
 protected:
  CallsTest() {
    // Only this thread uses the loop's timers.
    loop_->Stop();
    Receive(kPreface + RawFrame(NGHTTP2_SETTINGS, 0, 0, ""));
  }
  ~CallsTest() override {
    calls_.Close();
    held_.clear();
    EXPECT_EQ(options_.budget->used(), 0u);
  }

  Http2Session& http2() { return calls_.http2(); }
  void Receive(const std::string& frames) { http2().Receive(frames, clock_.Now()); }
  void Acknowledge(uint8_t type, const std::string& payload) { Receive(RawFrame(type, NGHTTP2_FLAG_ACK, 0, payload)); }
  // All output, as far as the client's window.
  std::string Output() {
    std::string output;
    for (std::string_view bytes = http2().NextOutput(); !bytes.empty(); bytes = http2().NextOutput()) {
      output.append(bytes);
    }
    return output;
  }

  ManualClock clock_;
  const std::shared_ptr<EventLoop> loop_ = *EventLoop::Start(clock_);
  std::vector<std::shared_ptr<ServerCall>> held_;
  const Calls::Options options_{.limits = {.calls_max = 2, .idle_frames_max = 5},
                                .handler = [this](const std::shared_ptr<ServerCall>& call) { held_.push_back(call); },
                                .budget = std::make_shared<Budget>(1 << 20, nullptr),
                                .secret = std::nullopt};
  Calls calls_{loop_, {}, options_};
};

TEST_F(CallsTest, ARequestBecomesACallOnceItIsWhole) {
  Receive(RequestHead(1) + RawFrame(NGHTTP2_DATA, 0, 1, PrefixOf(2) + "a"));
  EXPECT_FALSE(calls_.Proceed());
  Receive(RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "b"));
  EXPECT_TRUE(calls_.Proceed());
  ASSERT_EQ(held_.size(), 1u);
  EXPECT_EQ(held_[0]->path(), "/a/B");
  EXPECT_EQ(held_[0]->message(), "ab");
  EXPECT_FALSE(held_[0]->refusal().has_value());
}

TEST_F(CallsTest, ARefusalIsACallAtOnceAndOnlyOnce) {
  Receive(RequestHead(1) + RawFrame(NGHTTP2_DATA, 0, 1, PrefixOf(UINT32_MAX)));
  ASSERT_EQ(held_.size(), 1u);
  EXPECT_EQ(held_[0]->refusal()->reason, Refusal::kMessageTooLarge);
  EXPECT_EQ(held_[0]->refusal()->bytes, UINT32_MAX);
  EXPECT_EQ(held_[0]->message(), "");
  Receive(RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "more"));
  EXPECT_FALSE(calls_.Proceed());
  EXPECT_EQ(held_.size(), 1u);
}

TEST_F(CallsTest, OnlyRequestsThatTakeTooLongAreLate) {
  Receive(WholeRequest(1, "whole"));
  calls_.Proceed();
  EXPECT_FALSE(calls_.RefuseLate());
  Receive(RequestHead(3));
  clock_.Advance(options_.limits.request_timeout);
  EXPECT_TRUE(calls_.RefuseLate());
  EXPECT_EQ(held_.size(), 1u);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(calls_.RefuseLate());
  ASSERT_EQ(held_.size(), 2u);
  EXPECT_EQ(held_[1]->refusal()->reason, Refusal::kIncomplete);
  EXPECT_FALSE(calls_.RefuseLate());
}

TEST_F(CallsTest, AStreamWithoutNewsHasNoPendingResponse) {
  EXPECT_FALSE(calls_.HasPendingResponse());
  Receive(RequestHead(1));
  EXPECT_FALSE(calls_.HasPendingResponse()) << "half a request has none";
  Receive(WholeRequest(3, ""));
  EXPECT_TRUE(calls_.HasPendingResponse());
  calls_.Proceed();
  calls_.Begin(3);
  EXPECT_FALSE(calls_.HasPendingResponse());
  calls_.Write(3, "news");
  EXPECT_TRUE(calls_.HasPendingResponse());
  Output();
  EXPECT_FALSE(calls_.HasPendingResponse());
  calls_.Finish(3, {}, std::nullopt);
  EXPECT_TRUE(calls_.HasPendingResponse());
  Output();
  EXPECT_FALSE(calls_.HasPendingResponse());
}

TEST_F(CallsTest, AnAnswerCountsOnceAndNotForAStreamThatIsGone) {
  Receive(WholeRequest(1, ""));
  calls_.Proceed();
  calls_.Finish(1, {}, "first");
  calls_.Finish(1, {}, "second");
  calls_.Write(1, "third");
  calls_.Finish(7, {}, "nobody's");
  const std::string output = Output();
  EXPECT_THAT(output, testing::HasSubstr("first"));
  EXPECT_THAT(output, testing::Not(testing::ContainsRegex("second|third|nobody")));
}

TEST_F(CallsTest, WhatACallDoesLaterItDoesAtOnceWhenTheConnectionCloses) {
  std::string done;
  Receive(WholeRequest(1, "") + WholeRequest(3, ""));
  calls_.Proceed();
  calls_.CallLater(1, seconds(100), [&] { done += "1"; });
  http2().AnnounceGoAway();
  calls_.RunAllLater();
  calls_.RunAllLater();
  EXPECT_EQ(done, "1");
  calls_.CallLater(3, seconds(100), [&] { done += "3"; });
  calls_.CallLater(99, seconds(100), [&] { done += "gone"; });
  EXPECT_EQ(done, "13gone");
}

TEST_F(CallsTest, CloseCancelsWhatRuns) {
  int cancelled = 0;
  Receive(WholeRequest(1, "") + WholeRequest(3, ""));
  calls_.Proceed();
  for (const auto& call : held_) {
    call->SetOnCancel([&] { ++cancelled; });
  }
  calls_.Finish(1, {}, "");
  calls_.Close();
  EXPECT_EQ(cancelled, 1);
}

// --- what belongs to no call ---

TEST_F(CallsTest, ItsClientHasGreetedWithItsAcknowledgement) {
  EXPECT_FALSE(http2().greeted());
  Output();
  Acknowledge(NGHTTP2_SETTINGS, "");
  EXPECT_TRUE(http2().greeted());
}

TEST_F(CallsTest, AfterTheAnnouncementStreamsOpenUntilThePingIsAcknowledged) {
  Output();
  http2().AnnounceGoAway();
  EXPECT_TRUE(http2().announced());
  Output();
  Receive(WholeRequest(1, ""));
  EXPECT_TRUE(calls_.Proceed());
  Acknowledge(NGHTTP2_PING, std::string(8, '\0'));
  EXPECT_TRUE(http2().closing());
  Receive(WholeRequest(3, ""));
  EXPECT_FALSE(calls_.Proceed());
  EXPECT_FALSE(http2().broken());
}

TEST_F(CallsTest, AStreamThatIsRefusedCountsAsAnIdleFrame) {
  uint32_t stream_id = 1;
  for (; stream_id <= 1 + 2 * 2; stream_id += 2) {
    Receive(RequestHead(stream_id));
  }
  for (int count = 0; count < 3; ++count, stream_id += 2) {  // One was refused, and the settings count.
    EXPECT_FALSE(http2().broken()) << count;
    Receive(RequestHead(stream_id));
  }
  EXPECT_FALSE(http2().broken());
  Receive(RequestHead(stream_id));
  EXPECT_TRUE(http2().broken());
  EXPECT_THAT(Output(), testing::HasSubstr("too_many_pings"));
}

TEST_F(CallsTest, AnAcknowledgementOfNothingCountsAsAnIdleFrame) {
  for (int count = 0; count < 5; ++count) {
    EXPECT_FALSE(http2().broken());
    Acknowledge(NGHTTP2_PING, std::string(8, '\0'));
  }
  EXPECT_TRUE(http2().broken());
}

TEST_F(CallsTest, AFrameThatMayNotBeFinishesTheSessionOnceItsClientIsTold) {
  Receive(RawFrame(NGHTTP2_DATA, 0, 99, "x"));
  EXPECT_FALSE(http2().finished());
  EXPECT_THAT(Output(), testing::Not(testing::IsEmpty()));
  EXPECT_TRUE(http2().finished());
}

class BacklogTest : public testing::Test {
 protected:
  // Looks after so many more seconds, with a timeout of sixty.
  bool IsStuckAfter(int64_t time) {
    now_ += seconds(time);
    return backlog_.IsStuck(now_, seconds(60));
  }

  Backlog backlog_;
  Instant now_{seconds(1000)};
};

TEST_F(BacklogTest, NothingIsNeverStuck) {
  EXPECT_FALSE(IsStuckAfter(0));
  EXPECT_FALSE(IsStuckAfter(1000));
}

TEST_F(BacklogTest, IsStuckWhenItsTimeHasPassedSinceItBegan) {
  backlog_.Add(10);
  EXPECT_TRUE(backlog_.waits());
  EXPECT_FALSE(IsStuckAfter(1000)) << "seen for the first time";
  EXPECT_FALSE(IsStuckAfter(60));
  EXPECT_TRUE(IsStuckAfter(1));
}

TEST_F(BacklogTest, MoreThatWaitsIsNoProgress) {
  backlog_.Add(10);
  EXPECT_FALSE(IsStuckAfter(0));
  backlog_.Add(10);
  EXPECT_TRUE(IsStuckAfter(61));
}

TEST_F(BacklogTest, WhateverAClientTakesIsProgress) {
  backlog_.Add(10);
  EXPECT_FALSE(IsStuckAfter(0));
  for (int count = 0; count < 9; ++count) {
    backlog_.Take(1);
    EXPECT_FALSE(IsStuckAfter(61));
  }
  backlog_.Take(0);
  EXPECT_TRUE(IsStuckAfter(61));
  backlog_.Drop(1);
  EXPECT_FALSE(backlog_.waits());
  EXPECT_FALSE(IsStuckAfter(61));
}

TEST_F(BacklogTest, WhatElseIsSentIsProgressOnlyWhileNoResponseWaits) {
  backlog_.SetBlocked(true);
  EXPECT_TRUE(backlog_.waits());
  backlog_.OnSent();
  EXPECT_FALSE(IsStuckAfter(61));
  EXPECT_TRUE(IsStuckAfter(61));
  backlog_.OnSent();
  EXPECT_FALSE(IsStuckAfter(0));
  backlog_.Add(10);
  backlog_.OnSent();
  EXPECT_TRUE(IsStuckAfter(61));
}

TEST(ReadyCalls, TheOldestIsFirst) {
  ReadyCalls ready;
  for (const int32_t stream_id : {5, 3, 7}) {
    ready.Insert(stream_id);
  }
  ready.Erase(5);
  EXPECT_EQ(ready.Take(), 3);
  EXPECT_EQ(ready.Take(), 7);
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(ready.Take(), std::nullopt);
}

TEST(ReadyCalls, ATurnIs64Calls) {
  ReadyCalls ready;
  for (int32_t stream_id = 1; stream_id <= 65; ++stream_id) {
    ready.Insert(stream_id);
  }
  for (int count = 0; count < 64; ++count) {
    EXPECT_TRUE(ready.Take().has_value());
    ready.CountBegun(0);
  }
  EXPECT_TRUE(ready.TurnIsOver());
  EXPECT_EQ(ready.Take(), std::nullopt);
  EXPECT_FALSE(ready.empty());
  ready.BeginTurn();
  EXPECT_EQ(ready.Take(), 65);
}

TEST(ReadyCalls, ATurnIs64KibibytesWhichTheLastMayPass) {
  ReadyCalls ready;
  ready.Insert(1);
  ready.CountBegun((64 << 10) - 1);
  EXPECT_EQ(ready.Take(), 1);
  ready.CountBegun(4 << 20);
  ready.Insert(3);
  EXPECT_EQ(ready.Take(), std::nullopt);
  ready.BeginTurn();
  EXPECT_EQ(ready.Take(), 3);
}

}  // namespace
}  // namespace rnicd::rpc
