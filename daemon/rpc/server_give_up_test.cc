// Clients that give their calls up, in frames that no library of HTTP/2 writes.
#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

constexpr uint8_t kUnknownFrame = 0x42;
const std::string kResetPayload = std::string("\0\0\0\x08", 4);
const std::string kFieldXY = std::string("\0\1x\1y", 5);

std::string RawReset(uint32_t stream_id) { return RawFrame(NGHTTP2_RST_STREAM, 0, stream_id, kResetPayload); }
std::string RawUpdate(uint32_t stream_id) { return RawFrame(NGHTTP2_WINDOW_UPDATE, 0, stream_id, kResetPayload); }
std::string RawPriority(uint32_t stream_id) { return RawFrame(NGHTTP2_PRIORITY, 0, stream_id, std::string(5, '\0')); }

// gRPC's core does so: a call that is given up before its headers were written is only reset.
TEST_F(ServerTest, FramesForStreamsThatNeverOpenedAreTolerated) {
  TestClient client(Connect());
  for (const uint32_t stream_id : {1U, 3U, 1001U, 0x7fffffffU}) {
    for (const std::string& frame : {RawReset(stream_id), RawUpdate(stream_id), RawPriority(stream_id)}) {
      ASSERT_TRUE(client.SendRaw(frame));
      ExpectEchoes(client);
    }
  }
  EXPECT_FALSE(client.goaway().has_value());
}

TEST_F(ServerTest, AStreamThatWasResetBeforeItOpenedMayOpen) {
  TestClient client(Connect());
  ExpectEchoes(client);
  const auto next = static_cast<uint32_t>(nghttp2_session_get_next_stream_id(client.session()));
  ASSERT_TRUE(client.SendRaw(RawPriority(next) + RawReset(next) + RawReset(next + 2)));
  ExpectEchoes(client);
  ExpectEchoes(client);
}

TEST_F(ServerTest, FramesForStreamsThatWereSkippedAreTolerated) {
  TestClient client(Connect());
  nghttp2_session_set_next_stream_id(client.session(), 9);
  ExpectEchoes(client);
  ASSERT_TRUE(client.SendRaw(RawReset(7) + RawUpdate(5) + RawPriority(3) + RawReset(9)));
  ExpectEchoes(client);
}

// The client cannot know yet that its stream has ended.
TEST_F(ServerTest, FramesForAStreamThatTheServerHasResetAreTolerated) {
  TestClient client(Connect());
  const int32_t stream_id = client.Open("/echo", {}, "POST", "application/json");
  ASSERT_TRUE(client.UntilClosed(stream_id));
  ASSERT_TRUE(client.Of(stream_id).reset);
  const auto ended = static_cast<uint32_t>(stream_id);
  ASSERT_TRUE(
      client.SendRaw(RawFrame(NGHTTP2_DATA, 0, ended, "late") + RawUpdate(ended) + RawPriority(ended) +
                     RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, ended, kFieldXY) +
                     RawReset(ended)));
  ExpectEchoes(client);
}

TEST_F(ServerTest, FramesOfExtensionsAreIgnored) {
  TestClient client(Connect());
  ExpectEchoes(client);
  ASSERT_TRUE(client.SendRaw(RawFrame(kUnknownFrame, 0xff, 99, "unknown") + RawFrame(kUnknownFrame, 0, 0, "") +
                             RawFrame(NGHTTP2_PRIORITY_UPDATE, 0, 0, std::string("\0\0\0\x63u=1", 7)) +
                             RawFrame(NGHTTP2_ALTSVC, 0, 0, "altsvc")));
  ExpectEchoes(client);
}

struct BrokenRow {
  const char* name;
  std::string frames;
  uint32_t error_code = NGHTTP2_PROTOCOL_ERROR;
};

class BrokenProtocol : public ServerTest, public testing::WithParamInterface<BrokenRow> {};

TEST_P(BrokenProtocol, EndsTheConnection) {
  TestClient client(Connect());
  ExpectEchoes(client);
  client.SendRaw(GetParam().frames);
  EXPECT_TRUE(client.UntilHungUp());
  ASSERT_TRUE(client.goaway().has_value());
  EXPECT_EQ(client.goaway()->first, GetParam().error_code);
}

INSTANTIATE_TEST_SUITE_P(
    Wire, BrokenProtocol,
    testing::Values(
        BrokenRow{"DataOfAStreamThatNeverOpened", RawFrame(NGHTTP2_DATA, 0, 99, "x")},
        BrokenRow{"ResetOfTheConnection", RawReset(0)}, BrokenRow{"PriorityOfTheConnection", RawPriority(0)},
        BrokenRow{"ResetOfAStreamOfTheServer", RawReset(2)}, BrokenRow{"UpdateOfAStreamOfTheServer", RawUpdate(2)},
        BrokenRow{"LargeReset", RawFrame(NGHTTP2_RST_STREAM, 0, 99, "large"), NGHTTP2_FRAME_SIZE_ERROR},
        BrokenRow{"SmallUpdate", RawFrame(NGHTTP2_WINDOW_UPDATE, 0, 99, "123"), NGHTTP2_FRAME_SIZE_ERROR},
        BrokenRow{"SmallPriority", RawFrame(NGHTTP2_PRIORITY, 0, 99, "1234"), NGHTTP2_FRAME_SIZE_ERROR},
        BrokenRow{"HeadersOfAStreamOfTheServer", RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2, kFieldXY)},
        BrokenRow{"ContinuationOfNothing", RawFrame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 99, kFieldXY)},
        BrokenRow{"ResetInsideOfHeaders", RawFrame(NGHTTP2_HEADERS, 0, 99, kFieldXY) + RawReset(101)}),
    [](const auto& given) { return given.param.name; });

class GiveUpTest : public ServerTest {
 protected:
  GiveUpTest() : ServerTest({.idle_frames_max = 20, .given_up_max = 20}) {}
  void ExpectSentAway(TestClient& client, const std::string& reason) {
    EXPECT_TRUE(client.UntilHungUp());
    ASSERT_TRUE(client.goaway().has_value());
    EXPECT_EQ(*client.goaway(), (std::pair<uint32_t, std::string>(NGHTTP2_ENHANCE_YOUR_CALM, reason)));
  }
};

TEST_F(GiveUpTest, AFloodForStreamsThatNeverOpenedIsSentAway) {
  for (const std::string& frame : {RawReset(99), RawUpdate(99), RawPriority(99)}) {
    TestClient client(Connect());
    ExpectEchoes(client);
    std::string flood;
    for (int count = 0; count < 21; ++count) {
      flood += frame;
    }
    client.SendRaw(flood);
    ExpectSentAway(client, "too_many_resets");
  }
}

TEST_F(GiveUpTest, AClientThatOnlyResetsItsCallsIsSentAway) {
  TestClient client(Connect());
  ExpectEchoes(client);
  for (int count = 0; count < 21; ++count) {
    const int32_t stream_id = client.Call("/hold");
    client.Flush();
    client.Cancel(stream_id);
    client.Flush();
  }
  ExpectSentAway(client, "too_many_resets");
}

class UpdatesTest : public ServerTest {
 protected:
  UpdatesTest() : ServerTest({.idle_frames_max = 20, .given_up_max = 100}) {}
};

// gRPC's C core sends a window update for each call.
TEST_F(UpdatesTest, WindowUpdatesOfCallsThatAreGivenUpAreNoIdleFrames) {
  TestClient client(Connect());
  for (int count = 0; count < 40; ++count) {
    const int32_t stream_id = client.Call("/hold");
    ASSERT_TRUE(client.SendRaw(RawUpdate(static_cast<uint32_t>(stream_id))));
    client.Cancel(stream_id);
  }
  ExpectEchoes(client);
}

TEST_F(GiveUpTest, FloodsOfWhatIsNoCallAreSentAway) {
  for (const std::string& frame :
       {RawFrame(NGHTTP2_SETTINGS, 0, 0, ""), RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, kFieldXY),
        RawFrame(NGHTTP2_DATA, 0, 3, "")}) {
    TestClient client(Connect());
    ExpectEchoes(client);
    const int32_t open = client.Open("/hold");
    ASSERT_EQ(open, 3);
    std::string flood;
    for (int count = 0; count < 21; ++count) {
      flood += frame;
    }
    client.SendRaw(flood);
    EXPECT_TRUE(client.UntilHungUp());
  }
}

TEST_F(GiveUpTest, ResponsesPayForCallsThatAreGivenUp) {
  TestClient client(Connect());
  for (int count = 0; count < 30; ++count) {
    for (int reset = 0; reset < 10; ++reset) {
      ASSERT_TRUE(client.SendRaw(RawReset(9999)));
    }
    ExpectEchoes(client);
  }
}

}  // namespace
}  // namespace rnicd::rpc
