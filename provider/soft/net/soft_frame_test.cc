#include "provider/soft/net/soft_frame.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rnicd::provider {
namespace {

IpAddress Ip(const char* text) { return *IpAddress::FromText(text); }

SoftMessage Offering() {
  return {.kind = SoftMessage::Kind::kRequest,
          .from = {.ip = Ip("198.18.0.1"), .port = 50000},
          .to = {.ip = Ip("fd00::1"), .port = 7},
          .connector = 0x1122334455667788,
          .queue_pair = "12345678",
          .offer = {.inbound_read_limit = 16, .outbound_read_limit = 1, .private_data = std::string(56, 'p')},
          .reason = ErrorReason::HOST_UNREACHABLE};
}

SoftRequest SecondPiece() {
  return {.kind = SoftRequest::Kind::kWrite,
          .to = 1,
          .from = std::numeric_limits<uint64_t>::max(),
          .serial = 3,
          .total = kPieceBytes + 5,
          .offset = kPieceBytes,
          .address = 0x7000,
          .token = 9,
          .solicit = true,
          .invalidate = 11,
          .bytes = "piece"};
}

std::vector<SoftFrame> OneOfEach() {
  return {SoftPing{}, SoftHello{.hosts = {Ip("198.18.0.1"), Ip("fd00::1")}}, Offering(), SecondPiece(),
          SoftReply{.result = SoftReply::Result::kDone, .to = 1, .from = 2, .serial = 3, .bytes = "read"}};
}

// The frame as it arrives; a test failure when it does not.
template <typename Frame>
Frame Carried(const Frame& frame) {
  const std::optional<SoftFrame> arrived = ParseFrame(FrameText(frame));
  EXPECT_TRUE(arrived.has_value() && std::holds_alternative<Frame>(*arrived));
  return arrived.has_value() ? std::get<Frame>(*arrived) : Frame();
}

bool Passes(const SoftFrame& frame) { return ParseFrame(FrameText(frame)).has_value(); }

TEST(SoftFrame, EveryFieldArrives) {
  for (const SoftFrame& frame : OneOfEach()) {
    const std::string text = FrameText(frame);
    const std::optional<SoftFrame> arrived = ParseFrame(text);
    ASSERT_TRUE(arrived.has_value()) << frame.index();
    EXPECT_EQ(FrameText(*arrived), text) << frame.index();
  }
  EXPECT_EQ(Carried(Offering()).from, Offering().from);
  EXPECT_EQ(Carried(Offering()).offer.private_data, Offering().offer.private_data);
  EXPECT_EQ(Carried(Offering()).reason, ErrorReason::HOST_UNREACHABLE);
  EXPECT_EQ(Carried(SecondPiece()).invalidate, 11U);
  EXPECT_EQ(Carried(SecondPiece()).bytes, "piece");
  EXPECT_EQ(Carried(SoftHello{.hosts = {Ip("fd00::1")}}).hosts, std::vector{Ip("fd00::1")});
}

TEST(SoftFrame, TruncatedAndLongerOnesAreRefused) {
  for (const SoftFrame& frame : OneOfEach()) {
    const std::string text = FrameText(frame);
    for (size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(ParseFrame(std::string_view(text).substr(0, size)).has_value()) << frame.index() << " " << size;
    }
    EXPECT_FALSE(ParseFrame(text + '\0').has_value()) << frame.index();
  }
}

TEST(SoftFrame, WhatNoDaemonSendsIsRefused) {
  EXPECT_FALSE(Passes(SoftHello{.version = 2, .hosts = {Ip("fd00::1")}}));
  EXPECT_FALSE(Passes(SoftHello{}));
  EXPECT_FALSE(Passes(SoftHello{.hosts = {IpAddress()}}));
  SoftMessage message = Offering();
  message.kind = SoftMessage::Kind::kEstablished;
  EXPECT_FALSE(Passes(message)) << "only an end itself says that";
  message = Offering();
  message.queue_pair = std::string(16, 'q');
  EXPECT_FALSE(Passes(message));
  message = Offering();
  message.offer.private_data = std::string(257, 'p');
  EXPECT_FALSE(Passes(message));
  message = Offering();
  message.reason = ErrorReason::INTERNAL_FAULT;
  EXPECT_FALSE(Passes(message)) << "not a reason of an end";
  SoftRequest request = SecondPiece();
  request.bytes = "shorter"[0];
  EXPECT_FALSE(Passes(request));
  request = SecondPiece();
  request.offset = request.total;
  EXPECT_FALSE(Passes(request));
  request = SecondPiece();
  request.total = (uint64_t{1} << 30) + 1;
  EXPECT_FALSE(Passes(request));
  EXPECT_FALSE(Passes(SoftReply{.bytes = std::string(kPieceBytes + 1, 'x')}));
}

// Each prints its seed when it fails. What passes is a frame that says the same when it is sent.
TEST(SoftFrame, RandomBytesAreAFrameOrNone) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<SoftFrame> frames = OneOfEach();
  for (int count = 0; count < 20000; ++count) {
    std::string text = FrameText(frames[random() % frames.size()]);
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(random() % 8 == 0 ? random() % (text.size() + 1) : text.size());
    if (const std::optional<SoftFrame> frame = ParseFrame(text); frame.has_value()) {
      EXPECT_TRUE(Passes(*frame));
    }
  }
}

TEST(SoftFrame, TheLargestFitsAPacket) {
  SoftRequest request = SecondPiece();
  request.total = 2 * kPieceBytes;
  request.bytes = std::string(kPieceBytes, 'x');
  EXPECT_LE(FrameText(request).size(), kFrameBytesMax);
}

}  // namespace
}  // namespace rnicd::provider
