#include <gtest/gtest.h>

#include <array>

#include "base/ndk/completion.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/sge.h"

namespace rnicd {
namespace {

TEST(Sge, OfBytesHasTheirAddressAndLength) {
  const std::array<std::byte, 5> bytes{};
  const Sge sge = Sge::Of(bytes, LocalToken{7});
  EXPECT_EQ(sge.address, reinterpret_cast<uintptr_t>(bytes.data()));
  EXPECT_EQ(sge.length, 5u);
  EXPECT_EQ(sge.token, LocalToken{7});
  EXPECT_TRUE(sge.inline_data.empty());
}

TEST(Sge, AtALogicalAddressHasThePrivilegedToken) {
  const Sge sge = Sge::At(LogicalAddress{0x2000}, 4096, PrivilegedToken{9});
  EXPECT_EQ(sge.address, 0x2000u);
  EXPECT_EQ(sge.length, 4096u);
  EXPECT_EQ(sge.token, LocalToken{9});
}

TEST(Sge, InlineRefersToItsBytes) {
  const std::array<std::byte, 5> bytes{};
  const Sge sge = Sge::Inline(bytes);
  EXPECT_EQ(sge.inline_data.data(), bytes.data());
  EXPECT_EQ(sge.length, 5u);
  EXPECT_EQ(sge.token, LocalToken{});
}

TEST(PostOutcome, FindsTheTokenOfARequest) {
  const PostOutcome outcome{
      .posted = 3,
      .failure = absl::OkStatus(),
      .issued_tokens = {{.request_index = 0, .remote_token = {0x100}}, {.request_index = 2, .remote_token = {0x102}}}};
  EXPECT_EQ(outcome.TokenOf(0), RemoteToken{0x100});
  EXPECT_EQ(outcome.TokenOf(1), RemoteToken{});
  EXPECT_EQ(outcome.TokenOf(2), RemoteToken{0x102});
}

TEST(Completion, IsOkOnlyWithSuccess) {
  EXPECT_TRUE(Completion{}.ok());
  EXPECT_FALSE(Completion{.status = NtStatus::kCancelled}.ok());
}

}  // namespace
}  // namespace rnicd
