#include "daemon/rpc/outgoing_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace rnicd::rpc {
namespace {

using testing::ElementsAre;
using testing::Pair;

class OutgoingResponseTest : public testing::Test {
 protected:
  std::string Move(size_t size) { return {buffer_.data(), response_.Move(buffer_.data(), size)}; }

  std::array<char, 100> buffer_{};
  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(10, nullptr);
  OutgoingResponse response_;
};

TEST(PrefixOf, IsBigEndian) {
  EXPECT_EQ(PrefixOf(0x01020304), std::string("\0\x01\x02\x03\x04", 5));
  EXPECT_EQ(PrefixOf(0), std::string(5, '\0'));
}

TEST_F(OutgoingResponseTest, HasItsHeadersOnce) {
  EXPECT_FALSE(response_.has_headers());
  EXPECT_TRUE(response_.BeginHeaders());
  EXPECT_TRUE(response_.has_headers());
  EXPECT_FALSE(response_.BeginHeaders());
}

TEST_F(OutgoingResponseTest, IsChargedUntilAllOfItHasMoved) {
  EXPECT_EQ(response_.Add("hello", *budget_), 10u);
  EXPECT_EQ(response_.Add("world", *budget_), 10u);
  EXPECT_EQ(budget_->used(), 20u) << "also above the limit";
  EXPECT_EQ(Move(12), PrefixOf(5) + "hello" + PrefixOf(5).substr(0, 2));
  EXPECT_EQ(response_.waiting_bytes(), 8u);
  EXPECT_EQ(budget_->used(), 20u);
  EXPECT_EQ(Move(100), PrefixOf(5).substr(2) + "world");
  EXPECT_EQ(response_.waiting_bytes(), 0u);
  EXPECT_EQ(budget_->used(), 0u);
  EXPECT_EQ(Move(100), "");
}

TEST_F(OutgoingResponseTest, OnlyACallThatWritesIsToldAndOnceWhenAllHasMoved) {
  response_.Add("", *budget_);
  Move(100);
  EXPECT_FALSE(response_.TakeWritten());
  response_.Write("", *budget_);
  response_.Write("", *budget_);
  Move(6);
  EXPECT_FALSE(response_.TakeWritten());
  Move(4);
  EXPECT_TRUE(response_.TakeWritten());
  EXPECT_FALSE(response_.TakeWritten());
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

}  // namespace
}  // namespace rnicd::rpc
