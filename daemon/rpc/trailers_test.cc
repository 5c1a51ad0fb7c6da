#include "daemon/rpc/trailers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rnicd::rpc {
namespace {

using testing::ElementsAre;
using testing::Pair;

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
