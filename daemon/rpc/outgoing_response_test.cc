#include "daemon/rpc/outgoing_response.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace rnicd::rpc {
namespace {

using http2::PrefixOf;

class OutgoingResponseTest : public testing::Test {
 protected:
  std::string Move(size_t size) { return {buffer_.data(), response_.Move(buffer_.data(), size)}; }

  std::array<char, 100> buffer_{};
  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(10, nullptr);
  OutgoingResponse response_;
};

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

}  // namespace
}  // namespace rnicd::rpc
