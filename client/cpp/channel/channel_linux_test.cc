// A channel and a daemon that does what the test says.
#include <sys/wait.h>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "client/cpp/channel/scripted_daemon_fixture.h"
#include "client/cpp/transport_failure.h"
#include "wire/http2/timeout.h"

namespace rnicd::inline client {
namespace {

using absl::StatusCode;
using Answer = absl::StatusOr<Channel::Answer>;

constexpr std::chrono::hours kLongTimeout{1};
constexpr std::chrono::milliseconds kShortTimeout{50};

class ChannelTest : public testing::Test {
 protected:
  std::future<Answer> Call(std::string message, std::chrono::milliseconds timeout = kLongTimeout) {
    return std::async(std::launch::async, [this, message = std::move(message), timeout] {
      return daemon_.channel().Call("/test/Method", message, timeout);
    });
  }
  // The failure of a call that the script has answered.
  StatusCode FailureOf(std::future<Answer>& call) {
    const absl::Status status = call.get().status();
    EXPECT_TRUE(IsTransportFailure(status)) << status;
    return status.code();
  }

  ScriptedDaemon daemon_;
};

TEST_F(ChannelTest, ACallSaysWhatGrpcWantsToKnow) {
  auto call = Call("question", std::chrono::seconds(30));
  const auto request = daemon_.Next();
  EXPECT_EQ(request.message, "question");
  EXPECT_EQ(request.headers.at(":method"), "POST");
  EXPECT_EQ(request.headers.at(":path"), "/test/Method");
  EXPECT_EQ(request.headers.at("te"), "trailers");
  EXPECT_EQ(request.headers.at("content-type"), "application/grpc");
  EXPECT_EQ(http2::ParseTimeout(request.headers.at("grpc-timeout")), std::chrono::seconds(30));
  daemon_.Answer(request.stream, "answer");
  const Answer answer = call.get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->message, "answer");
}

TEST_F(ChannelTest, ThreadsGetTheirOwnAnswersInAnyOrder) {
  std::map<std::string, std::future<Answer>> calls;
  std::vector<ScriptedDaemon::Request> requests;
  for (int index = 0; index < 8; ++index) {
    const std::string name = std::to_string(index);
    calls.emplace(name, Call(name));
    requests.push_back(daemon_.Next());
  }
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    daemon_.Answer(request->stream, "to " + request->message);
    EXPECT_EQ(calls[request->message].get()->message, "to " + request->message);
  }
}

TEST_F(ChannelTest, AThreadThatGivesUpResetsItsCallAndLetsAnotherRead) {
  auto gives_up = Call("gives up", kShortTimeout);
  const int32_t given_up = daemon_.Next().stream;
  auto waits = Call("waits");
  const int32_t waiting = daemon_.Next().stream;
  EXPECT_EQ(FailureOf(gives_up), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(daemon_.NextReset(), given_up);
  daemon_.Answer(waiting, "answer");
  EXPECT_EQ(waits.get()->message, "answer");
}

TEST_F(ChannelTest, LargeMessagesArriveWhole) {
  const std::string large(5'000'000, 'q');
  auto call = Call(large);
  const auto request = daemon_.Next();
  EXPECT_EQ(request.message, large);
  // More than the channel's window, so that it must grant more.
  std::string larger;
  larger.resize(20'000'000, 'a');
  auto answering = std::async(std::launch::async, [&] { return call.get(); });
  daemon_.Send(request.stream, larger);
  daemon_.End(request.stream, {});
  auto next = Call("next");
  daemon_.Answer(daemon_.Next().stream, "");
  EXPECT_EQ(answering.get()->message.size(), larger.size());
  EXPECT_TRUE(next.get().ok());
}

TEST_F(ChannelTest, AnAnswerComesWhileTheSocketTakesNoMore) {
  auto first = Call("first");
  const int32_t stream = daemon_.Next().stream;
  const std::string more_than_a_socket(8'000'000, 'x');
  auto stuck = Call(more_than_a_socket);
  daemon_.Answer(stream, "answer");
  EXPECT_EQ(first.get()->message, "answer");
  const auto request = daemon_.Next();
  EXPECT_EQ(request.message.size(), more_than_a_socket.size());
  daemon_.Answer(request.stream, "");
  EXPECT_TRUE(stuck.get().ok());
}

TEST_F(ChannelTest, AllCallsFailWhenTheDaemonHangsUp) {
  auto one = Call("one");
  auto other = Call("other");
  daemon_.Next();
  daemon_.Next();
  daemon_.HangUp();
  EXPECT_EQ(FailureOf(one), StatusCode::kUnavailable);
  EXPECT_EQ(FailureOf(other), StatusCode::kUnavailable);
  EXPECT_TRUE(daemon_.channel().ended());
  auto later = Call("later");
  EXPECT_EQ(FailureOf(later), StatusCode::kUnavailable);
}

TEST_F(ChannelTest, WhatIsNotHttp2EndsTheConnection) {
  auto call = Call("");
  daemon_.Next();
  daemon_.SendRaw(std::string(100, '\xff'));
  EXPECT_EQ(FailureOf(call), StatusCode::kUnavailable);
  EXPECT_TRUE(daemon_.channel().ended());
}

TEST_F(ChannelTest, AnswersThatAreNotGrpcAreTransportFailures) {
  auto page = Call("");
  daemon_.AnswerHeaders(daemon_.Next().stream, {{":status", "404"}});
  EXPECT_EQ(FailureOf(page), StatusCode::kInternal);
  auto silent = Call("");
  daemon_.AnswerHeaders(daemon_.Next().stream, {{":status", "200"}});
  EXPECT_EQ(FailureOf(silent), StatusCode::kInternal);
  auto without_message = Call("");
  daemon_.End(daemon_.Next().stream, {});
  EXPECT_EQ(FailureOf(without_message), StatusCode::kInternal);
  auto compressed = Call("");
  const int32_t stream = daemon_.Next().stream;
  daemon_.SendBytes(stream, std::string("\1\0\0\0\1x", 6));
  EXPECT_EQ(FailureOf(compressed), StatusCode::kInternal);
  EXPECT_EQ(daemon_.NextReset(), stream);
  auto endless = Call("");
  daemon_.SendBytes(daemon_.Next().stream, std::string("\0\xff\xff\xff\xff", 5));
  EXPECT_EQ(FailureOf(endless), StatusCode::kInternal);
  EXPECT_FALSE(daemon_.channel().ended());
}

TEST_F(ChannelTest, AResetSaysWhatGrpcTakesItFor) {
  const std::map<uint32_t, StatusCode> codes = {{NGHTTP2_REFUSED_STREAM, StatusCode::kUnavailable},
                                                {NGHTTP2_CANCEL, StatusCode::kCancelled},
                                                {NGHTTP2_ENHANCE_YOUR_CALM, StatusCode::kResourceExhausted},
                                                {NGHTTP2_INTERNAL_ERROR, StatusCode::kInternal}};
  for (const auto& [reset, code] : codes) {
    auto call = Call("");
    daemon_.Reset(daemon_.Next().stream, reset);
    EXPECT_EQ(FailureOf(call), code);
  }
}

TEST_F(ChannelTest, AStatusArrivesAsTheDaemonSentIt) {
  auto call = Call("");
  daemon_.AnswerHeaders(daemon_.Next().stream, {{":status", "200"}, {"grpc-status", "9"}, {"grpc-message", "50%25"}});
  const Answer answer = call.get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status.code, 9);
  EXPECT_EQ(answer->status.message, "50%");
}

TEST_F(ChannelTest, AfterAGoodbyeCallsUnderWayGoOnAndNewOnesAreRefused) {
  auto under_way = Call("");
  const int32_t stream = daemon_.Next().stream;
  EXPECT_FALSE(daemon_.channel().ended());
  daemon_.GoAway(stream);
  daemon_.Answer(stream, "");
  EXPECT_TRUE(under_way.get().ok());
  EXPECT_TRUE(daemon_.channel().ended());
  auto later = Call("");
  EXPECT_EQ(FailureOf(later), StatusCode::kUnavailable);
}

TEST_F(ChannelTest, EventsArriveInOrderWhileCallsWait) {
  daemon_.channel().OpenEvents("/test/Events", "");
  const int32_t events = daemon_.Next().stream;
  auto call = Call("");
  const int32_t stream = daemon_.Next().stream;
  daemon_.Send(events, "1");
  daemon_.Send(events, "2");
  daemon_.Answer(stream, "");
  EXPECT_TRUE(call.get().ok());
  EXPECT_TRUE(daemon_.channel().has_events());
  EXPECT_EQ(daemon_.channel().TakeEvents().messages, (std::vector<std::string>{"1", "2"}));
  EXPECT_FALSE(daemon_.channel().has_events());
  daemon_.End(events, {.code = 14, .message = "over", .details = ""});
  EXPECT_TRUE(daemon_.channel().AwaitEvents(daemon_.channel().events_taken(), Instant::max()));
  const Channel::Events last = daemon_.channel().TakeEvents();
  ASSERT_TRUE(last.end.has_value());
  EXPECT_EQ(last.end->code(), StatusCode::kUnavailable);
}

TEST_F(ChannelTest, WhatTheDaemonSentBeforeItHungUpIsReadByACallThatComesTooLate) {
  daemon_.channel().OpenEvents("/test/Events", "");
  daemon_.Send(daemon_.Next().stream, "last");
  daemon_.HangUp();
  auto late = Call("");
  EXPECT_EQ(FailureOf(late), StatusCode::kUnavailable);
  const Channel::Events events = daemon_.channel().TakeEvents();
  EXPECT_EQ(events.messages, std::vector<std::string>{"last"});
  EXPECT_TRUE(events.end.has_value());
}

TEST_F(ChannelTest, AThreadThatWaitsForEventsLearnsThatAnotherTookThem) {
  daemon_.channel().OpenEvents("/test/Events", "");
  const int32_t events = daemon_.Next().stream;
  const uint64_t taken = daemon_.channel().events_taken();
  daemon_.Send(events, "event");
  daemon_.channel().ReadWaiting();
  EXPECT_EQ(daemon_.channel().TakeEvents().messages.size(), 1u);
  EXPECT_TRUE(daemon_.channel().AwaitEvents(taken, Instant::max()));
  EXPECT_FALSE(daemon_.channel().has_events());
}

TEST_F(ChannelTest, CloseEndsTheCallsOfOtherThreads) {
  auto call = Call("");
  daemon_.Next();
  daemon_.channel().Close();
  EXPECT_EQ(FailureOf(call), StatusCode::kUnavailable);
}

TEST_F(ChannelTest, AChildOfForkIsRefusedAndDoesNotDisturbTheParent) {
  auto before = Call("");
  daemon_.Answer(daemon_.Next().stream, "");
  EXPECT_TRUE(before.get().ok());
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status refused = daemon_.channel().Call("/test/Method", "", kLongTimeout).status();
    daemon_.DropChannel();
    _exit(refused.code() == StatusCode::kFailedPrecondition && IsTransportFailure(refused) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  auto after = Call("");
  daemon_.Answer(daemon_.Next().stream, "");
  EXPECT_TRUE(after.get().ok());
}

}  // namespace
}  // namespace rnicd::inline client
