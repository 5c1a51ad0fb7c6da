#include "wire/http2/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rnicd::http2 {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::optional<Status> Read(const std::vector<HeaderField>& fields) {
  StatusReader reader;
  for (const auto& [name, value] : fields) {
    reader.Add(name, value);
  }
  return reader.Take();
}

TEST(Trailers, SuccessIsANumberAlone) { EXPECT_THAT(TrailersOf({}), ElementsAre(Pair("grpc-status", "0"))); }

TEST(Trailers, HaveTheMessageAndTheDetails) {
  EXPECT_THAT(TrailersOf({.code = 8, .message = "100% full", .details = "abc"}),
              ElementsAre(Pair("grpc-status", "8"), Pair("grpc-message", "100%25 full"),
                          Pair("grpc-status-details-bin", "YWJj")));
}

TEST(Trailers, DetailsHaveNoPadding) {
  EXPECT_THAT(TrailersOf({.code = 8, .details = "a"}),
              ElementsAre(Pair("grpc-status", "8"), Pair("grpc-status-details-bin", "YQ")));
}

TEST(PercentEncoded, LeavesPrintableAscii) {
  std::string printable;
  for (char character = ' '; character <= '~'; ++character) {
    if (character != '%') {
      printable.push_back(character);
    }
  }
  EXPECT_EQ(PercentEncoded(printable), printable);
}

TEST(PercentEncoded, EncodesTheBytesOfUtf8AndControls) {
  EXPECT_EQ(PercentEncoded("é%\n\x7f"), "%c3%a9%25%0a%7f");
  EXPECT_EQ(PercentEncoded(std::string_view("\0\xff", 2)), "%00%ff");
}

TEST(PercentDecoded, TakesDigitsOfEitherCase) { EXPECT_EQ(PercentDecoded("%c3%A9%25 %4A"), "é% J"); }

TEST(PercentDecoded, AMalformedEscapeIsKept) {
  for (const char* text : {"%", "%4", "100%", "%zz", "%4z", "%z4", "a%%%", "%+1", "% 1"}) {
    EXPECT_EQ(PercentDecoded(text), text);
  }
  EXPECT_EQ(PercentDecoded("%%41"), "%A");
}

TEST(StatusReader, ReadsWhatTrailersOfWrites) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) {
    every_byte.push_back(static_cast<char>(byte));
    const std::optional<Status> read = Read(TrailersOf({.code = 8, .message = every_byte, .details = every_byte}));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->code, 8);
    EXPECT_EQ(read->message, every_byte);
    EXPECT_EQ(read->details, every_byte);
  }
}

TEST(StatusReader, IsEmptyWithoutACode) {
  EXPECT_FALSE(Read({}).has_value());
  EXPECT_FALSE(Read({{":status", "200"}, {"grpc-message", "text"}}).has_value());
}

TEST(StatusReader, StartsAgainAfterTake) {
  StatusReader reader;
  reader.Add("grpc-status", "5");
  reader.Add("grpc-message", "text");
  EXPECT_EQ(reader.Take()->code, 5);
  EXPECT_FALSE(reader.Take().has_value());
  reader.Add("grpc-status", "0");
  EXPECT_EQ(reader.Take()->message, "");
}

TEST(StatusReader, ACodeThatGrpcDoesNotHaveIsUnknown) {
  for (const char* value : {"", "17", "-1", "+1", " 1", "1 ", "1.0", "0x1", "text", "99999999999999999999"}) {
    EXPECT_EQ(Read({{"grpc-status", value}})->code, 2) << value;
  }
  EXPECT_EQ(Read({{"grpc-status", "0"}})->code, 0);
  EXPECT_EQ(Read({{"grpc-status", "16"}})->code, 16);
}

TEST(StatusReader, DetailsMayHavePadding) {
  for (const char* value : {"YQ", "YQ=="}) {
    EXPECT_EQ(Read({{"grpc-status", "8"}, {"grpc-status-details-bin", value}})->details, "a");
  }
}

TEST(StatusReader, MalformedDetailsAreNone) {
  for (const char* value : {"Y", "YQ=", "Y!Q", "YWJj,YWJj"}) {
    EXPECT_EQ(Read({{"grpc-status", "8"}, {"grpc-status-details-bin", value}})->details, "") << value;
  }
}

TEST(StatusReader, KeepsNoValueAbove64KiB) {
  const std::string longest(64 << 10, 'a');
  for (const auto& [text, kept] : {std::pair(longest, true), std::pair(longest + "aaaa", false)}) {
    const std::optional<Status> read =
        Read({{"grpc-status", "8"}, {"grpc-message", text}, {"grpc-status-details-bin", text}});
    EXPECT_EQ(read->message, kept ? text : "");
    EXPECT_EQ(read->details.size(), kept ? longest.size() / 4 * 3 : 0);
  }
}

}  // namespace
}  // namespace rnicd::http2
