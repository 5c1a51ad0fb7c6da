#include "daemon/rpc/incoming_request.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wire/http2/message.h"

namespace rnicd::rpc {
namespace {

using http2::PrefixOf;
using std::chrono::seconds;

constexpr uint64_t kStream = 100;
const std::string kOwnSecret(64, 'a');

IncomingRequest RequestOf(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  IncomingRequest request{Instant(), BudgetCharge()};
  for (const auto& [name, value] : fields) {
    EXPECT_TRUE(request.AddHeader(name, value, Limits{}, std::nullopt));
  }
  return request;
}

TEST(Bearer, IsTheSchemeAndTheSecret) {
  const SecretDigest secret = SecretDigest::Of("secret");
  EXPECT_TRUE(IsBearerOf(secret, "Bearer secret"));
  for (const char* value : {"", "secret", "Bearer", "Bearer ", "bearer secret", "Bearer  secret", "Bearer secret ",
                            "Bearer secre", "Basic secret"}) {
    EXPECT_FALSE(IsBearerOf(secret, value)) << value;
  }
}

TEST(Bearer, WhatIsLongerThanAnySecretIsNotTried) {
  const std::string longest(256, 'x');
  EXPECT_TRUE(IsBearerOf(SecretDigest::Of(longest), "Bearer " + longest));
  EXPECT_FALSE(IsBearerOf(SecretDigest::Of(longest + "x"), "Bearer " + longest + "x"));
}

TEST(RequestHeaders, KeepWhatACallNeeds) {
  IncomingRequest request = RequestOf({{":method", "POST"},
                                       {":path", "/s/m"},
                                       {"content-type", "application/grpc"},
                                       {"grpc-timeout", "7S"},
                                       {"anything", "else"}});
  EXPECT_EQ(request.NotGrpc(), std::nullopt);
  EXPECT_EQ(request.deadline(), Instant(seconds(7)));
  EXPECT_EQ(request.TakePath(), "/s/m");
}

TEST(RequestHeaders, OnlyPostIsGrpc) {
  EXPECT_EQ(RequestOf({{":method", "GET"}, {"content-type", "application/grpc"}}).NotGrpc(), 405);
  EXPECT_EQ(RequestOf({}).NotGrpc(), 405);
}

TEST(RequestHeaders, OnlyGrpcsContentTypesAreGrpc) {
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"}) {
    EXPECT_EQ(RequestOf({{":method", "POST"}, {"content-type", type}}).NotGrpc(), std::nullopt) << type;
  }
  for (const char* type :
       {"", "application/json", "application/grpc-web", "application/grp", "text/application/grpc"}) {
    EXPECT_EQ(RequestOf({{":method", "POST"}, {"content-type", type}}).NotGrpc(), 415) << type;
  }
  EXPECT_EQ(RequestOf({{":method", "POST"}}).NotGrpc(), 415);
}

TEST(RequestHeaders, AreBoundedInNumber) {
  const Limits limits = {.header_fields_max = 3};
  IncomingRequest headers = RequestOf({});
  EXPECT_TRUE(headers.AddHeader("a", "", limits, std::nullopt));
  EXPECT_TRUE(headers.AddHeader("a", "", limits, std::nullopt));
  EXPECT_TRUE(headers.AddHeader("a", "", limits, std::nullopt));
  EXPECT_FALSE(headers.AddHeader("a", "", limits, std::nullopt));
}

// Each field costs its name, its value and 32 bytes.
TEST(RequestHeaders, AreBoundedInBytes) {
  const Limits limits = {.header_bytes_max = 70};
  IncomingRequest fits = RequestOf({});
  EXPECT_TRUE(fits.AddHeader("name", std::string(34, 'x'), limits, std::nullopt));
  IncomingRequest too_large = RequestOf({});
  EXPECT_FALSE(too_large.AddHeader("name", std::string(35, 'x'), limits, std::nullopt));
  IncomingRequest two = RequestOf({});
  EXPECT_TRUE(two.AddHeader("a", "b", limits, std::nullopt));
  EXPECT_TRUE(two.AddHeader("a", "b", limits, std::nullopt));
  EXPECT_FALSE(two.AddHeader("", "", limits, std::nullopt));
}

// Nobody is charged for it, and a client may send it with every call for a byte.
TEST(RequestHeaders, APathThatIsTooLongForAMethodIsNotKept) {
  const std::string longest(256, '/');
  EXPECT_EQ(RequestOf({{":path", longest}}).TakePath(), longest);
  EXPECT_EQ(RequestOf({{":path", longest + "/"}}).TakePath(), "");
}

class IncomingRequestTest : public testing::Test {
 protected:
  IncomingRequest New() { return {began_, *budget_->Take(kStream)}; }
  // What the request of these bytes is refused for, in one piece and byte by byte.
  std::optional<Refusal::Reason> RefusedFor(std::string_view bytes) {
    std::vector<std::optional<Refusal>> refusals;
    for (const size_t piece : {bytes.size(), size_t{1}}) {
      IncomingRequest request = New();
      std::optional<Refusal> refusal;
      for (std::string_view left = bytes; !left.empty() && !refusal.has_value(); left.remove_prefix(piece)) {
        refusal = request.AddData(left.substr(0, piece), limits_);
      }
      refusals.push_back(refusal.has_value() ? refusal : request.End());
    }
    EXPECT_EQ(refusals[0].has_value(), refusals[1].has_value());
    return refusals[0].has_value() ? std::optional(refusals[0]->reason) : std::nullopt;
  }
  // Whether a request with these values of the secret's field is refused.
  bool IsRefusedWith(const std::vector<std::string>& values) {
    IncomingRequest request = New();
    for (const std::string& value : values) {
      EXPECT_TRUE(request.AddHeader("authorization", value, limits_, SecretDigest::Of(kOwnSecret)));
    }
    const std::optional<Refusal> refusal = request.CheckHeaders(/*needs_secret=*/true);
    return refusal.has_value() && refusal->reason == Refusal::kSecretMissing;
  }

  const Limits limits_{.message_bytes_max = 1000};
  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(kStream + 500, nullptr);
  const Instant began_{seconds(100)};
};

TEST_F(IncomingRequestTest, IsChargedTheLengthOfItsMessageBeforeAByteArrives) {
  IncomingRequest request = New();
  EXPECT_FALSE(request.AddData(PrefixOf(400), limits_).has_value());
  EXPECT_EQ(budget_->used(), kStream + 400);
  EXPECT_FALSE(request.AddData(std::string(400, 'x'), limits_).has_value());
  EXPECT_FALSE(request.End().has_value());
  EXPECT_EQ(budget_->used(), kStream + 400);
  EXPECT_EQ(request.TakeMessage(), std::string(400, 'x'));
}

TEST_F(IncomingRequestTest, TheChargeOutlivesItWhereItWasTaken) {
  BudgetCharge charge;
  {
    IncomingRequest request = New();
    request.AddData(PrefixOf(400), limits_);
    request.DropMessage();
    charge = request.TakeCharge();
  }
  EXPECT_EQ(budget_->used(), kStream + 400);
}

TEST_F(IncomingRequestTest, IsExactlyOneMessage) {
  const std::string message = PrefixOf(3) + "abc";
  EXPECT_EQ(RefusedFor(message), std::nullopt);
  EXPECT_EQ(RefusedFor(PrefixOf(0)), std::nullopt);
  for (const std::string& body : {std::string(), message.substr(0, 1), message.substr(0, 4), message.substr(0, 7),
                                  message + "x", message + message, PrefixOf(0) + PrefixOf(0)}) {
    EXPECT_EQ(RefusedFor(body), Refusal::kMessageCount) << body.size();
  }
}

TEST_F(IncomingRequestTest, ACompressedMessageIsRefused) {
  for (const char flag : {'\x01', '\x02', '\xff'}) {
    EXPECT_EQ(RefusedFor(flag + PrefixOf(3).substr(1) + "abc"), Refusal::kCompressed);
  }
}

TEST_F(IncomingRequestTest, AllocatesNoMoreThanTheLength) {
  IncomingRequest request = New();
  request.AddData(PrefixOf(400) + "x", limits_);
  for (int count = 0; count < 399; ++count) {
    EXPECT_FALSE(request.AddData("x", limits_).has_value());
  }
  EXPECT_EQ(request.TakeMessage().capacity(), 400u);
}

TEST_F(IncomingRequestTest, AMessageAboveALimitIsRefusedByItsLengthAndNotCharged) {
  const std::vector<std::pair<uint32_t, Refusal::Reason>> rows = {
      {501, Refusal::kOverBudget}, {1001, Refusal::kMessageTooLarge}, {UINT32_MAX, Refusal::kMessageTooLarge}};
  for (const auto& [bytes, reason] : rows) {
    IncomingRequest request = New();
    const std::optional<Refusal> refusal = request.AddData(PrefixOf(bytes), limits_);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->reason, reason);
    EXPECT_EQ(refusal->bytes, bytes);
    EXPECT_EQ(budget_->used(), kStream);
  }
}

TEST_F(IncomingRequestTest, TheLastFieldThatShowsASecretCounts) {
  const std::string right = "Bearer " + kOwnSecret;
  EXPECT_FALSE(IsRefusedWith({right}));
  EXPECT_FALSE(IsRefusedWith({"Bearer wrong", right}));
  EXPECT_TRUE(IsRefusedWith({}));
  EXPECT_TRUE(IsRefusedWith({right, "Bearer wrong"}));
}

TEST_F(IncomingRequestTest, ItsDeadlineIsCountedFromItsBegin) {
  IncomingRequest request = New();
  EXPECT_EQ(request.deadline(), std::nullopt);
  request.AddHeader("grpc-timeout", "3S", limits_, std::nullopt);
  EXPECT_FALSE(request.CheckHeaders(/*needs_secret=*/false).has_value());
  EXPECT_EQ(request.deadline(), began_ + seconds(3));
}

TEST_F(IncomingRequestTest, AMalformedTimeoutIsRefused) {
  IncomingRequest request = New();
  request.AddHeader("grpc-timeout", "soon", limits_, std::nullopt);
  ASSERT_TRUE(request.CheckHeaders(/*needs_secret=*/false).has_value());
  EXPECT_EQ(request.CheckHeaders(/*needs_secret=*/false)->reason, Refusal::kTimeoutMalformed);
}

}  // namespace
}  // namespace rnicd::rpc
