#include "wire/http2/message.h"

#include <gtest/gtest.h>

namespace rnicd::http2 {
namespace {

// The messages of these bytes, added in pieces; empty when they are refused.
std::optional<std::vector<std::string>> MessagesOf(std::string_view bytes, size_t piece, MessageReader& reader) {
  std::vector<std::string> messages;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (!reader.Add(bytes.substr(0, piece))) {
      return std::nullopt;
    }
    while (std::optional<std::string> message = reader.Next()) {
      messages.push_back(*std::move(message));
    }
  }
  return messages;
}

TEST(PrefixOf, IsBigEndian) {
  EXPECT_EQ(PrefixOf(0x01020304), std::string("\0\x01\x02\x03\x04", 5));
  EXPECT_EQ(PrefixOf(0), std::string(5, '\0'));
}

TEST(ReadPrefix, ReadsWhatPrefixOfWrites) {
  for (const uint32_t length : {0u, 1u, 0x80u, 0xff00u, 0x01020304u, UINT32_MAX}) {
    EXPECT_EQ(ReadPrefix(PrefixOf(length)).length, length);
    EXPECT_FALSE(ReadPrefix(PrefixOf(length)).compressed);
  }
}

TEST(ReadPrefix, EveryFlagButZeroIsCompressed) {
  for (const char flag : {'\x01', '\x02', '\xff'}) {
    EXPECT_TRUE(ReadPrefix(flag + PrefixOf(3).substr(1)).compressed);
  }
}

TEST(MessageReader, GivesTheSameMessagesForPiecesOfAnySize) {
  const std::vector<std::string> sent = {"one", "", std::string(300, 'x'), "", ""};
  std::string bytes;
  for (const std::string& message : sent) {
    bytes += PrefixOf(message.size()) + message;
  }
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    MessageReader reader(300);
    EXPECT_EQ(MessagesOf(bytes, piece, reader), sent) << piece;
    EXPECT_TRUE(reader.empty());
  }
}

TEST(MessageReader, KeepsMessagesInOrderUntilTheyAreTaken) {
  MessageReader reader(10);
  EXPECT_TRUE(reader.Add(PrefixOf(1) + "a" + PrefixOf(1) + "b"));
  EXPECT_EQ(reader.Next(), "a");
  EXPECT_TRUE(reader.Add(PrefixOf(1) + "c"));
  EXPECT_EQ(reader.Next(), "b");
  EXPECT_EQ(reader.Next(), "c");
  EXPECT_EQ(reader.Next(), std::nullopt);
}

TEST(MessageReader, IsNotEmptyInsideOfAMessage) {
  const std::string message = PrefixOf(2) + "ab";
  MessageReader reader(2);
  EXPECT_TRUE(reader.empty());
  for (size_t place = 0; place + 1 < message.size(); ++place) {
    EXPECT_TRUE(reader.Add(message.substr(place, 1)));
    EXPECT_FALSE(reader.empty()) << place;
    EXPECT_EQ(reader.Next(), std::nullopt);
  }
  EXPECT_TRUE(reader.Add("b"));
  EXPECT_TRUE(reader.empty());
}

TEST(MessageReader, RefusesALengthAboveItsLimitBeforeTheMessageArrives) {
  MessageReader longest(300);
  EXPECT_TRUE(longest.Add(PrefixOf(300)));
  for (const uint32_t length : {301u, UINT32_MAX}) {
    MessageReader reader(300);
    EXPECT_FALSE(reader.Add(PrefixOf(length)));
  }
}

TEST(MessageReader, RefusesACompressedMessage) {
  MessageReader reader(300);
  EXPECT_FALSE(reader.Add('\x01' + PrefixOf(3).substr(1)));
}

}  // namespace
}  // namespace rnicd::http2
