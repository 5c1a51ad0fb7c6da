#include "daemon/rpc/message_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rnicd::rpc {
namespace {

using Event = MessageReader::Event;

// Adds everything, accepts the length, and returns the events that are no kNone.
std::vector<Event> AddAll(MessageReader& reader, std::string_view bytes) {
  std::vector<Event> events;
  while (!bytes.empty()) {
    const Event event = reader.Add(bytes);
    if (event != Event::kNone) {
      events.push_back(event);
    }
    if (event == Event::kLength) {
      reader.Accept();
    } else if (event != Event::kNone) {
      break;
    }
  }
  return events;
}

TEST(MessageReader, TakesAMessageInOnePiece) {
  MessageReader reader;
  EXPECT_EQ(AddAll(reader, PrefixOf(5) + "hello"), std::vector{Event::kLength});
  EXPECT_EQ(reader.length(), 5u);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.TakeMessage(), "hello");
}

TEST(MessageReader, TakesAMessageByteByByte) {
  MessageReader reader;
  const std::string bytes = PrefixOf(300) + std::string(300, 'x');
  for (size_t index = 0; index < bytes.size(); ++index) {
    EXPECT_FALSE(reader.complete());
    AddAll(reader, std::string_view(bytes).substr(index, 1));
  }
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.TakeMessage(), std::string(300, 'x'));
}

TEST(MessageReader, AnEmptyMessageIsCompleteWithItsPrefix) {
  MessageReader reader;
  EXPECT_FALSE(reader.complete());
  EXPECT_EQ(AddAll(reader, PrefixOf(0)), std::vector{Event::kLength});
  EXPECT_TRUE(reader.complete());
}

TEST(MessageReader, KeepsNothingBeforeTheLengthIsAccepted) {
  MessageReader reader;
  const std::string bytes = PrefixOf(UINT32_MAX) + "x";
  std::string_view left = bytes;
  EXPECT_EQ(reader.Add(left), Event::kLength);
  EXPECT_EQ(left, "x");
  EXPECT_EQ(reader.length(), UINT32_MAX);
  EXPECT_FALSE(reader.complete());
}

TEST(MessageReader, AllocatesNoMoreThanTheLength) {
  MessageReader reader;
  constexpr size_t kSize = 100'000;
  const std::string bytes = PrefixOf(kSize) + std::string(kSize, 'x');
  AddAll(reader, std::string_view(bytes).substr(0, 60'000));
  AddAll(reader, std::string_view(bytes).substr(60'000));
  EXPECT_EQ(reader.TakeMessage().capacity(), kSize);
}

TEST(MessageReader, AByteAfterTheMessageIsASecondMessage) {
  MessageReader reader;
  EXPECT_EQ(AddAll(reader, PrefixOf(2) + "ab" + "c"), (std::vector{Event::kLength, Event::kSecond}));
  MessageReader empty;
  EXPECT_EQ(AddAll(empty, PrefixOf(0) + PrefixOf(0)), (std::vector{Event::kLength, Event::kSecond}));
}

TEST(MessageReader, ACompressedMessageIsSeenByItsPrefix) {
  for (const char flag : {'\x01', '\x02', '\xff'}) {
    MessageReader reader;
    std::string bytes = PrefixOf(3) + "abc";
    bytes.front() = flag;
    EXPECT_EQ(AddAll(reader, bytes), std::vector{Event::kCompressed});
    EXPECT_FALSE(reader.complete());
  }
}

TEST(MessageReader, APrefixIsBigEndian) {
  EXPECT_EQ(PrefixOf(0x01020304), std::string("\0\x01\x02\x03\x04", 5));
  EXPECT_EQ(PrefixOf(0), std::string(5, '\0'));
}

}  // namespace
}  // namespace rnicd::rpc
