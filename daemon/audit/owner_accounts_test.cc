#include "daemon/audit/owner_accounts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rnicd::audit {
namespace {

constexpr uint64_t kSharedRate = 1024;
constexpr Moment kNow{.instant = Instant(std::chrono::seconds(1000)), .wall = WallTime(std::chrono::seconds(1000))};

AuditLine LineOf(uint32_t uid, absl::StatusCode code = absl::StatusCode::kOk) {
  return {.what = "x", .code = code, .caller = core::Caller{.uid = uid}};
}

// Number of lines that were written before one was left out.
uint64_t UseUp(OwnerAccounts& accounts, uint32_t uid) {
  std::vector<AuditLine> out;
  while (accounts.Add(LineOf(uid), kNow, out) == LineResult::kWritten) {
  }
  return out.size();
}

TEST(OwnerAccounts, AFloodCostsItsOwnerOnly) {
  OwnerAccounts accounts(kSharedRate);
  const uint64_t alone = UseUp(accounts, 1);
  EXPECT_GT(alone, 1u);
  EXPECT_EQ(UseUp(accounts, 1), 0u);
  EXPECT_EQ(UseUp(accounts, 2), alone);
}

TEST(OwnerAccounts, OwnersBeyondTheBoundShareOneAccountAndLoseNoCount) {
  OwnerAccounts accounts(kSharedRate);
  std::vector<AuditLine> out;
  for (uint32_t uid = 0; uid < OwnerAccounts::kOwnersMax; ++uid) {
    accounts.Add(LineOf(uid), kNow, out);
  }
  const uint64_t alone = UseUp(accounts, OwnerAccounts::kOwnersMax);
  EXPECT_GT(alone, 1u);
  EXPECT_EQ(UseUp(accounts, OwnerAccounts::kOwnersMax + 1), 0u);
  EXPECT_GT(UseUp(accounts, 0), 1u) << "the others keep theirs";
  out.clear();
  accounts.TakeAll(kNow, out);
  const auto others =
      std::find_if(out.begin(), out.end(), [](const AuditLine& line) { return line.left_out_of == "others"; });
  ASSERT_NE(others, out.end());
  EXPECT_EQ(others->times, 2u);
}

TEST(OwnerAccounts, AnIdleAccountIsForgotten) {
  OwnerAccounts accounts(kSharedRate);
  std::vector<AuditLine> out;
  accounts.Add(LineOf(1, absl::StatusCode::kNotFound), kNow, out);
  EXPECT_FALSE(accounts.empty());
  accounts.TakeDue({.instant = kNow.instant + std::chrono::seconds(10), .wall = kNow.wall}, out);
  EXPECT_TRUE(accounts.empty());
}

TEST(OwnerAccounts, WhatTheDaemonDecidesIsAlwaysWritten) {
  OwnerAccounts accounts(kSharedRate);
  std::vector<AuditLine> out;
  for (int count = 0; count < 1000; ++count) {
    EXPECT_EQ(accounts.Add({.what = "grant.expire"}, kNow, out), LineResult::kWritten);
  }
  EXPECT_TRUE(accounts.empty());
}

TEST(OwnerAccounts, ConnectionsOfUnknownClientsAreMerged) {
  OwnerAccounts accounts(kSharedRate);
  std::vector<AuditLine> out;
  const AuditLine refused{
      .what = "connection", .code = absl::StatusCode::kResourceExhausted, .note = "connection_limit"};
  EXPECT_EQ(accounts.Add(refused, kNow, out), LineResult::kWritten);
  EXPECT_EQ(accounts.Add(refused, kNow, out), LineResult::kMerged);
}

}  // namespace
}  // namespace rnicd::audit
