#include "daemon/rpc/request_headers.h"

#include <string>

#include <gtest/gtest.h>

namespace rnicd::rpc {
namespace {

using std::chrono::nanoseconds;

RequestHeaders HeadersOf(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  RequestHeaders headers;
  for (const auto& [name, value] : fields) {
    EXPECT_TRUE(headers.Add(name, value, Limits{}));
  }
  return headers;
}

TEST(ParseTimeout, TakesUpToEightDigitsAndAUnit) {
  EXPECT_EQ(ParseTimeout("1H"), std::chrono::hours(1));
  EXPECT_EQ(ParseTimeout("2M"), std::chrono::minutes(2));
  EXPECT_EQ(ParseTimeout("3S"), std::chrono::seconds(3));
  EXPECT_EQ(ParseTimeout("4m"), std::chrono::milliseconds(4));
  EXPECT_EQ(ParseTimeout("5u"), std::chrono::microseconds(5));
  EXPECT_EQ(ParseTimeout("00000006n"), nanoseconds(6));
  EXPECT_EQ(ParseTimeout("0m"), nanoseconds(0));
  EXPECT_EQ(ParseTimeout("99999999S"), std::chrono::seconds(99'999'999));
}

TEST(ParseTimeout, TheLongestIsACentury) {
  EXPECT_EQ(ParseTimeout("99999999H"), std::chrono::hours(876'000));
  EXPECT_EQ(ParseTimeout("876000H"), std::chrono::hours(876'000));
  EXPECT_EQ(ParseTimeout("875999H"), std::chrono::hours(875'999));
}

TEST(ParseTimeout, RefusesEverythingElse) {
  for (const char* text : {"", "m", "1", "123456789m", "1s", "1h", "-1m", "+1m", "1.5S", " 1S", "1 S", "1mm", "0x1S"}) {
    EXPECT_EQ(ParseTimeout(text), std::nullopt) << text;
  }
}

TEST(RequestHeaders, KeepsWhatACallNeeds) {
  const RequestHeaders headers = HeadersOf({{":method", "POST"},
                                            {":path", "/s/m"},
                                            {"content-type", "application/grpc"},
                                            {"grpc-timeout", "7S"},
                                            {"anything", "else"}});
  EXPECT_EQ(headers.NotGrpc(), std::nullopt);
  EXPECT_EQ(headers.path(), "/s/m");
  EXPECT_TRUE(headers.has_timeout());
  EXPECT_EQ(headers.timeout(), std::chrono::seconds(7));
}

TEST(RequestHeaders, AMalformedTimeoutIsNoTimeoutButThere) {
  const RequestHeaders headers = HeadersOf({{"grpc-timeout", "soon"}});
  EXPECT_TRUE(headers.has_timeout());
  EXPECT_EQ(headers.timeout(), std::nullopt);
}

TEST(RequestHeaders, OnlyPostIsGrpc) {
  EXPECT_EQ(HeadersOf({{":method", "GET"}, {"content-type", "application/grpc"}}).NotGrpc(), 405);
  EXPECT_EQ(HeadersOf({}).NotGrpc(), 405);
}

TEST(RequestHeaders, OnlyGrpcsContentTypesAreGrpc) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"}) {
    EXPECT_EQ(HeadersOf({{":method", "POST"}, {"content-type", type}}).NotGrpc(), std::nullopt) << type;
  }
  for (const char* type :
       {"", "application/json", "application/grpc-web", "application/grp", "text/application/grpc"}) {
    EXPECT_EQ(HeadersOf({{":method", "POST"}, {"content-type", type}}).NotGrpc(), 415) << type;
  }
  EXPECT_EQ(HeadersOf({{":method", "POST"}}).NotGrpc(), 415);
}

TEST(RequestHeaders, AreBoundedInNumber) {
  const Limits limits = {.header_fields_max = 3};
  RequestHeaders headers;
  EXPECT_TRUE(headers.Add("a", "", limits));
  EXPECT_TRUE(headers.Add("a", "", limits));
  EXPECT_TRUE(headers.Add("a", "", limits));
  EXPECT_FALSE(headers.Add("a", "", limits));
}

// Each field costs its name, its value and 32 bytes.
TEST(RequestHeaders, AreBoundedInBytes) {
  const Limits limits = {.header_bytes_max = 70};
  RequestHeaders fits;
  EXPECT_TRUE(fits.Add("name", std::string(34, 'x'), limits));
  RequestHeaders too_large;
  EXPECT_FALSE(too_large.Add("name", std::string(35, 'x'), limits));
  RequestHeaders two;
  EXPECT_TRUE(two.Add("a", "b", limits));
  EXPECT_TRUE(two.Add("a", "b", limits));
  EXPECT_FALSE(two.Add("", "", limits));
}

// Nobody is charged for it, and a client may send it with every call for a byte.
TEST(RequestHeaders, APathThatIsTooLongForAMethodIsNotKept) {
  const std::string longest(256, '/');
  EXPECT_EQ(HeadersOf({{":path", longest}}).path(), longest);
  EXPECT_EQ(HeadersOf({{":path", longest + "/"}}).path(), "");
}

}  // namespace
}  // namespace rnicd::rpc
